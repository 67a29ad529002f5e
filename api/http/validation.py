"""Bodies against their schemas, with messages that name the field and the next step.

Pure. Called by `api.routing.endpoint` for bodies and by `api.http.query` for queries.
Messages never repeat a value that was sent: it may be a secret.
"""

import re
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import Any

from jsonschema import Draft202012Validator, FormatChecker, validators
from jsonschema.exceptions import ValidationError, best_match
from jsonschema.protocols import Validator

from api import errors

_NAMES = {
    "object": "a JSON object",
    "array": "an array",
    "string": "a string",
    "integer": "an integer",
    "boolean": "true or false",
    "null": "null",
}


def _pattern(_: Any, pattern: str, value: Any, schema: Any) -> Iterator[ValidationError]:
    # In Python `$` also matches before a line feed at the end; in JSON Schema it does not.
    strict = re.sub(r"\$$", r"\\Z", pattern)
    if isinstance(value, str) and not re.search(strict, value):
        yield ValidationError("does not match")


_Strict = validators.extend(  # type: ignore[no-untyped-call]
    Draft202012Validator,
    {"pattern": _pattern},
    # 1.0 is no integer where an int goes on into an object or a row.
    type_checker=Draft202012Validator.TYPE_CHECKER.redefine("integer", lambda _, value: type(value) is int),
)


def validator(schema: Mapping[str, Any]) -> Validator:
    """A checker of one schema, formats included."""
    found: Validator = _Strict(dict(schema), format_checker=FormatChecker())
    return found


def check(checker: Validator, body: Any) -> None:
    """Raises the 400 for the first thing wrong with `body`, outermost first."""
    found = sorted(checker.iter_errors(body), key=lambda error: (len(error.absolute_path), _rank(error)))
    if not found:
        return
    error = found[0]
    # Of alternatives, the one that nearly fits says more than "fits none".
    while error.context and (inner := best_match(error.context)) is not None:
        error = inner
    raise _refusal(error)


def _rank(error: ValidationError) -> int:
    # A misspelt field is also a missing one: the misspelling is the cause, so it is told first.
    order = ("type", "additionalProperties", "required")
    return order.index(str(error.validator)) if str(error.validator) in order else len(order)


def _refusal(error: ValidationError) -> errors.ApiError:
    path = [str(part) for part in error.absolute_path]
    if error.validator == "required":
        wanted: Any = error.validator_value
        given: Any = error.instance
        missing = next(name for name in wanted if name not in given)
        field = ".".join([*path, missing])
        return errors.invalid(f"the field {field} is required", field)
    if str(error.validator) in ("additionalProperties", "propertyNames"):
        return _unknown(error, path)
    field = ".".join(path)
    return errors.invalid(f"{field or 'the body'} {sentence(error)}", field or None)


def _unknown(error: ValidationError, path: list[str]) -> errors.ApiError:
    if error.validator == "propertyNames" or not isinstance(error.instance, dict):
        return errors.invalid(f"{'.'.join(path)} {sentence(error)}", ".".join(path))
    known = list((error.schema.get("properties") or {}) if isinstance(error.schema, dict) else ())
    name = next(str(key) for key in error.instance if key not in known)
    near = get_close_matches(name, known, 1)
    hint = f"did you mean {near[0]}?" if near else "known are " + ", ".join(sorted(known))
    field = ".".join([*path, name])
    return errors.invalid(f"there is no field {field[:200]!r}; {hint}", field[:200])


def sentence(error: ValidationError) -> str:
    """What is wrong, to follow the field's name."""
    wanted: Any = error.validator_value
    match error.validator:
        case "type":
            types = [wanted] if isinstance(wanted, str) else list(wanted)
            return "must be " + " or ".join(_NAMES.get(name, name) for name in types)
        case "enum":
            return "must be one of " + ", ".join(str(choice) for choice in wanted)
        case "minLength" | "minItems" | "minProperties":
            return "must not be empty" if wanted == 1 else f"must be at least {wanted} long"
        case "maxLength" | "maxItems" | "maxProperties":
            return f"must be at most {wanted} long"
        case "minimum":
            return f"must be at least {wanted}"
        case "maximum":
            return f"must be at most {wanted}"
        case "oneOf" | "anyOf":
            return "fits none of the possible forms"
    meaning = str(error.schema.get("description") or "") if isinstance(error.schema, dict) else ""
    return (
        f"does not have the expected form: {_first(meaning)}"
        if meaning
        else "does not have the expected form"
    )


def _first(text: str) -> str:
    return re.split(r"(?<=[^.]{2}[.])\s", text, maxsplit=1)[0]
