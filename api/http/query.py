"""Query parameters of a route and their validation.

A route declares its parameters as JSON Schemas; the OpenAPI document uses the same schemas.
Pure. Called by `api.routing.endpoint`.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cached_property
from typing import Any

from jsonschema.protocols import Validator

from api import errors
from api.http import validation

_INTEGER = re.compile(r"-?[0-9]{1,18}", re.ASCII)


@dataclass(frozen=True)
class Parameter:
    """A query parameter; the type of its schema is string or integer."""

    name: str
    schema: Mapping[str, Any]
    required: bool = False
    default: Any = None
    description: str = ""
    example: Any = None
    expected: str = ""
    """What the error of an invalid value says; by default what the schema requires."""

    @cached_property
    def validator(self) -> Validator:
        """The validator of its values."""
        return validation.validator(self.schema)


def parse(parameters: Iterable[Parameter], items: Iterable[tuple[str, str]]) -> dict[str, Any]:
    """Return the value of every parameter, with defaults. Raises a 400 that names the parameter.

    Strict: rejects an unknown name, a repeated name, and an empty or invalid value;
    never ignores or clamps a value.
    """
    by_name = {parameter.name: parameter for parameter in parameters}
    values = {name: parameter.default for name, parameter in by_name.items()}
    present: set[str] = set()
    for name, text in items:
        parameter = by_name.get(name)
        if parameter is None:
            raise errors.invalid(_unknown_message(name, by_name), name)
        if name in present:
            raise errors.invalid(f"{name} is given more than once", name)
        present.add(name)
        values[name] = _parse_value(parameter, text)
    for name, parameter in by_name.items():
        if parameter.required and name not in present:
            raise errors.invalid(f"the query parameter {name} is required", name)
    return values


def _unknown_message(name: str, by_name: Mapping[str, Parameter]) -> str:
    matches = get_close_matches(name, by_name, 1)
    if matches:
        return f"there is no query parameter {name!r} here; did you mean {matches[0]}?"
    return f"there is no query parameter {name!r} here; " + (
        "the parameters are " + ", ".join(sorted(by_name)) if by_name else "it takes none"
    )


def _parse_value(parameter: Parameter, text: str) -> Any:
    value: Any = text
    if parameter.schema.get("type") == "integer":
        if not _INTEGER.fullmatch(text):
            raise errors.invalid(f"{parameter.name} must be an integer, not {text[:100]!r}", parameter.name)
        value = int(text)
    error = next(parameter.validator.iter_errors(value), None)
    if error is not None:
        expected = parameter.expected or validation.describe(error)
        raise errors.invalid(f"{parameter.name} {expected}", parameter.name)
    return value
