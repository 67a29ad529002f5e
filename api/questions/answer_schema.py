"""JSON Schemas of answers, which crews write: what they may use, and the check of an answer. Pure.

A crew's schema is untrusted: no keyword may fetch anything or run a regular expression, and the check of an
answer takes a bounded number of steps. Blocking; called by `api.questions.answers` in a thread.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from jsonschema import Draft202012Validator, FormatChecker, validators
from jsonschema.exceptions import SchemaError, ValidationError
from referencing import Registry

from api import errors
from api.http import validation
from api.store.index.runs.inputs import as_stored, canonical
from crds.json_depth import too_deep

MAX_SCHEMA_BYTES = 16 * 1024
MAX_CHOICES_BYTES = 16 * 1024
MAX_CHECK_STEPS = 200_000
"""Keywords and entries of their lists that a check may apply; an answer of 1 MiB needs some ten thousand."""
MAX_CHECK_DEPTH = 150
"""Keywords that may be open at once: each takes some four frames of Python's stack of 1,000."""
TYPE_COUNT = 7
"""Of JSON Schema."""
_REFUSED = frozenset(
    {"pattern", "patternProperties", "$dynamicRef", "$recursiveRef", "$id", "$anchor", "$dynamicAnchor"}
)
_BY_NAME = frozenset({"properties", "$defs", "definitions", "dependentSchemas"})
"""Keywords whose keys are names and whose values are schemas."""
_PLAIN = frozenset({"enum", "const", "default", "examples", "required", "dependentRequired"})
"""Keywords whose values contain no schema."""
_FORMATS = FormatChecker(("date", "date-time", "time", "email", "uuid", "ipv4", "ipv6"))


class _OutOfSteps(Exception):
    pass


class _OutOfDepth(Exception):
    pass


def schema_problem(schema: Any) -> str | None:
    """Return why a question cannot have this schema, or None."""
    if not isinstance(schema, dict):
        return "schema must be a JSON object"
    if too_deep(schema) or len(canonical(schema)) > MAX_SCHEMA_BYTES:
        return f"schema is larger than {MAX_SCHEMA_BYTES} bytes or nested too deeply"
    for keyword, value in _keywords(schema):
        if keyword in _REFUSED:
            return f"schema uses {keyword}, which is not supported; describe the form in the prompt"
        if keyword == "$ref" and not _resolves(schema, value):
            return f"schema has a $ref that names nothing in it: {str(value)[:100]!r}"
        # The library compares each with each other one.
        if keyword == "type" and isinstance(value, list) and len(value) > TYPE_COUNT:
            return f"schema has a type with {len(value)} names; there are {TYPE_COUNT}"
    try:
        Draft202012Validator.check_schema(schema)
    except (SchemaError, RecursionError) as error:
        return f"schema is not a JSON Schema: {str(getattr(error, 'message', error))[:300]}"
    return None


def choices_problem(choices: Any) -> str | None:
    """Return why a question cannot have these choices, or None."""
    if not isinstance(choices, list) or not choices:
        return "choices must be a list with at least one value"
    if too_deep(choices) or len(canonical(choices)) > MAX_CHOICES_BYTES:
        return f"choices are larger than {MAX_CHOICES_BYTES} bytes or nested too deeply"
    return None


def check_answer(value: Any, schema: Mapping[str, Any] | None, choices: Any) -> None:
    """Raise a 400 with the field if the answer does not fit the question."""
    # A client in JavaScript, and a Run object, give the choice 1.0 as 1.
    if choices is not None and as_stored(value) not in {as_stored(choice) for choice in choices}:
        shown = ", ".join(json.dumps(choice, ensure_ascii=False) for choice in choices)
        raise errors.invalid(f"value must be one of {shown[:1000]}", "value")
    if schema is not None:
        check_value(value, schema, "value")


def check_value(value: Any, schema: Mapping[str, Any], field: str) -> None:
    """Raise a 400 with the part of `field` that does not fit the schema."""
    try:
        validation.check(_bounded_validator(schema), value, field)
    except _OutOfSteps:
        raise errors.invalid(f"{field} takes too long to check against its schema", field) from None
    except (_OutOfDepth, RecursionError):
        raise errors.invalid(f"{field} is nested too deeply for a check against its schema", field) from None


def _bounded_validator(schema: Mapping[str, Any]) -> Any:
    steps, depth = MAX_CHECK_STEPS, 0

    def counted(check: Callable[..., Any]) -> Callable[..., Iterator[ValidationError]]:
        def count(*arguments: Any) -> Iterator[ValidationError]:
            nonlocal steps, depth
            expected = arguments[1]
            steps -= 1 + (len(expected) if isinstance(expected, list) else 0)
            if steps < 0:
                raise _OutOfSteps
            if depth == MAX_CHECK_DEPTH:
                raise _OutOfDepth
            depth += 1
            try:
                yield from check(*arguments) or ()
            finally:
                depth -= 1

        return count

    keywords = {**Draft202012Validator.VALIDATORS, "uniqueItems": validation.unique_items}
    bounded = validators.extend(  # type: ignore[no-untyped-call]
        Draft202012Validator, {name: counted(check) for name, check in keywords.items()}
    )
    # An empty registry: without one, a reference is fetched.
    return bounded(dict(schema), format_checker=_FORMATS, registry=Registry())


def _keywords(schema: Any) -> Iterator[tuple[str, Any]]:
    """Yield each keyword of a schema and of those in it, with its value."""
    if isinstance(schema, list):
        for item in schema:
            yield from _keywords(item)
    elif isinstance(schema, dict):
        for keyword, value in schema.items():
            yield keyword, value
            if keyword in _BY_NAME and isinstance(value, dict):
                yield from _keywords(list(value.values()))
            elif keyword not in _PLAIN:
                yield from _keywords(value)


def _resolves(schema: Mapping[str, Any], reference: Any) -> bool:
    """Return whether a `$ref` is a pointer to a part of this schema."""
    if not isinstance(reference, str) or not (reference == "#" or reference.startswith("#/")):
        return False
    place: Any = schema
    for part in reference.split("/")[1:]:
        name = part.replace("~1", "/").replace("~0", "~")
        if not isinstance(place, dict) or name not in place:
            return False
        place = place[name]
    return isinstance(place, dict | bool)
