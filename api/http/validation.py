"""JSON Schema validation with error messages that name the field and the next step.

Pure. Called by `api.routing.endpoint` for bodies and by `api.http.query` for queries.
Messages never contain a value from the request: it may be a secret.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from difflib import get_close_matches
from itertools import islice
from typing import Any

from jsonschema import Draft202012Validator, FormatChecker, validators
from jsonschema.exceptions import ValidationError, best_match
from jsonschema.protocols import Validator

from api import errors

_TYPE_NAMES = {
    "object": "a JSON object",
    "array": "an array",
    "string": "a string",
    "integer": "an integer",
    "boolean": "true or false",
    "null": "null",
}
_FORMS = {
    "date": "a day such as 2026-11-21",
    "date-time": "a time such as 2026-11-21T10:00:00Z",
    "uri": "a URL such as https://host/path",
}
"""Texts for formats, with an example."""
MAX_READ_ERRORS = 1000
MAX_MATCHED_CHARACTERS = 100
"""Of a text with a pattern and without `maxLength`."""
_Check = Callable[[Any, Any, Any, Any], Iterable[ValidationError] | None]


def _pattern(_: Any, pattern: str, value: Any, schema: Any) -> Iterator[ValidationError]:
    if not isinstance(value, str):
        return
    if "maxLength" not in schema and len(value) > MAX_MATCHED_CHARACTERS:
        yield ValidationError("is too long", validator="maxLength", validator_value=MAX_MATCHED_CHARACTERS)
    # In Python `$` also matches before a line feed at the end; in JSON Schema it does not.
    elif not re.search(re.sub(r"\$$", r"\\Z", pattern), value):
        yield ValidationError("does not match")


def unique_items(_: Any, unique: Any, value: Any, schema: Any) -> Iterator[ValidationError]:
    """Check `uniqueItems` once for each item: the library compares each with each other one."""
    if unique is True and isinstance(value, list):
        texts = {json.dumps(item, sort_keys=True) for item in value}
        if len(texts) < len(value):
            yield ValidationError("has equal items")


def _within_limits(check: _Check) -> _Check:
    """Return a check that skips what is above the limit of its schema, whose error says enough.

    A body has room for a hundred thousand entries, and for texts that take minutes to match.
    """

    def checked(checker: Any, expected: Any, value: Any, schema: Any) -> Iterator[ValidationError]:
        limit = schema.get(_LIMITS.get(type(value), ""))
        if limit is None or len(value) <= limit:
            yield from check(checker, expected, value, schema) or ()

    return checked


_LIMITS: Mapping[type, str] = {str: "maxLength", list: "maxItems", dict: "maxProperties"}
_BOUNDED = ("additionalProperties", "format", "items", "pattern", "properties", "propertyNames",
            "uniqueItems")  # fmt: skip
_CHECKS = {**Draft202012Validator.VALIDATORS, "pattern": _pattern, "uniqueItems": unique_items}
_Strict = validators.extend(  # type: ignore[no-untyped-call]
    Draft202012Validator,
    {name: _within_limits(_CHECKS[name]) for name in _BOUNDED},
    # 1.0 is not an integer: the value becomes an int in an object or a row.
    type_checker=Draft202012Validator.TYPE_CHECKER.redefine("integer", lambda _, value: type(value) is int),
)


def validator(schema: Mapping[str, Any]) -> Validator:
    """Return a validator of one schema that also checks formats."""
    checker: Validator = _Strict(dict(schema), format_checker=FormatChecker())
    return checker


def check(checker: Validator, body: Any, parent: str | None = None) -> None:
    """Raise a 400 for the first error of `body`, outermost first. `parent`: the field that has it."""
    failures = sorted(
        islice(checker.iter_errors(body), MAX_READ_ERRORS),
        key=lambda error: (len(error.absolute_path), _error_rank(error)),
    )
    if not failures:
        return
    error = failures[0]
    # Of several alternatives, report the error of the closest one.
    while error.context and (inner := best_match(error.context)) is not None:
        error = inner
    raise _api_error(error, [] if parent is None else [parent])


def _error_rank(error: ValidationError) -> int:
    # A misspelled field is also a missing one: report the misspelling, which is the cause.
    order = ("type", "additionalProperties", "required")
    return order.index(str(error.validator)) if str(error.validator) in order else len(order)


def _api_error(error: ValidationError, parents: list[str]) -> errors.HttpApiError:
    path = [*parents, *(str(part) for part in error.absolute_path)]
    if error.validator == "required":
        required: Any = error.validator_value
        instance: Any = error.instance
        missing = next(name for name in required if name not in instance)
        field = ".".join([*path, missing])
        return errors.invalid(f"the field {field} is required", field)
    if str(error.validator) in ("additionalProperties", "propertyNames"):
        return _unknown_field(error, path)
    field = ".".join(path)
    return errors.invalid(f"{field or 'the body'} {describe(error)}", field or None)


def _unknown_field(error: ValidationError, path: list[str]) -> errors.HttpApiError:
    if error.validator == "propertyNames" or not isinstance(error.instance, dict):
        return errors.invalid(f"{'.'.join(path)} {describe(error)}", ".".join(path))
    properties = list((error.schema.get("properties") or {}) if isinstance(error.schema, dict) else ())
    name = next(str(key) for key in error.instance if key not in properties)
    matches = get_close_matches(name[:200], properties, 1)
    field = ".".join([*path, name])
    hint = "there are none here" if not properties else "the fields are " + ", ".join(sorted(properties))
    if matches:
        hint = f"did you mean {matches[0]}?"
    return errors.invalid(f"there is no field {field[:200]!r}; {hint}", field[:200])


def describe(error: ValidationError) -> str:
    """Describe an error; the text follows the name of the field."""
    expected: Any = error.validator_value
    match error.validator:
        case "type":
            types = [expected] if isinstance(expected, str) else list(expected)
            return "must be " + " or ".join(_TYPE_NAMES.get(name, name) for name in types)
        case "enum":
            return "must be one of " + ", ".join(str(choice) for choice in expected)
        case "minLength" | "minItems" | "minProperties":
            return "must not be empty" if expected == 1 else f"must have at least {_counted(error)}"
        case "maxLength" | "maxItems" | "maxProperties":
            return f"must have at most {_counted(error)}"
        case "minimum":
            return f"must be at least {expected}"
        case "maximum":
            return f"must be at most {expected}"
        case "uniqueItems":
            return "must not contain an entry twice"
        case "oneOf" | "anyOf":
            return "matches none of the allowed forms"
    schema = error.schema if isinstance(error.schema, dict) else {}
    if (form := _FORMS.get(str(schema.get("format")))) is not None:
        return f"must be {form}"
    meaning = str(schema.get("description") or "")
    return (
        f"does not have the expected form: {_first_sentence(meaning)}"
        if meaning
        else "does not have the expected form"
    )


def _counted(error: ValidationError) -> str:
    """Return a limit of length with its unit, such as `63 characters`."""
    unit = {"Length": "character", "Items": "item", "Properties": "field"}[str(error.validator)[3:]]
    return f"{error.validator_value} {unit}{'' if error.validator_value == 1 else 's'}"


def _first_sentence(text: str) -> str:
    return re.split(r"(?<=[^.]{2}[.])\s", text, maxsplit=1)[0]
