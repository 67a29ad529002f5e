"""Query parameters: what a route takes, and what it refuses.

A route lists its parameters as JSON Schemas, so that the description of the API
is made of the same words that check it. Pure. Called by `api.routing.endpoint`.
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
    """One query parameter; its schema's type is string or integer."""

    name: str
    schema: Mapping[str, Any]
    required: bool = False
    default: Any = None
    description: str = ""
    example: Any = None

    @cached_property
    def checker(self) -> Validator:
        """What its values must fit."""
        return validation.validator(self.schema)


def parse(parameters: Iterable[Parameter], given: Iterable[tuple[str, str]]) -> dict[str, Any]:
    """Every parameter's value, defaults filled in. Raises a 400 that names the parameter.

    Nothing is guessed: an unknown name, a name given twice, an empty or an
    impossible value is refused, never ignored and never clamped.
    """
    known = {parameter.name: parameter for parameter in parameters}
    values = {name: parameter.default for name, parameter in known.items()}
    seen: set[str] = set()
    for name, text in given:
        parameter = known.get(name)
        if parameter is None:
            raise errors.invalid(_unknown(name, known), name)
        if name in seen:
            raise errors.invalid(f"{name} is given more than once", name)
        seen.add(name)
        values[name] = _value(parameter, text)
    for name, parameter in known.items():
        if parameter.required and name not in seen:
            raise errors.invalid(f"the query parameter {name} is required", name)
    return values


def _unknown(name: str, known: Mapping[str, Parameter]) -> str:
    near = get_close_matches(name, known, 1)
    if near:
        return f"there is no query parameter {name!r} here; did you mean {near[0]}?"
    return f"there is no query parameter {name!r} here; " + (
        "there are " + ", ".join(sorted(known)) if known else "none is taken"
    )


def _value(parameter: Parameter, text: str) -> Any:
    value: Any = text
    if parameter.schema.get("type") == "integer":
        if not _INTEGER.fullmatch(text):
            raise errors.invalid(f"{parameter.name} must be an integer, not {text[:100]!r}", parameter.name)
        value = int(text)
    failed = next(parameter.checker.iter_errors(value), None)
    if failed is not None:
        raise errors.invalid(f"{parameter.name} {validation.sentence(failed)}", parameter.name)
    return value
