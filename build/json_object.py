"""Validated access to JSON in an environment variable. Called by settings and registry.prune_settings."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


class BuildSettingsInvalid(Exception):
    """The pod's environment is invalid; the text names the variable and the key."""


@dataclass(frozen=True)
class JsonObject:
    """A JSON object and its name in messages."""

    name: str
    values: Mapping[str, Any]

    def object(self, key: str, default: Mapping[str, Any] | None = None) -> "JsonObject":
        """Return the object at `key`. Raises BuildSettingsInvalid."""
        value = self.values.get(key, default)
        if not isinstance(value, Mapping):
            raise BuildSettingsInvalid(f"{self.name}.{key} must be an object")
        return JsonObject(f"{self.name}.{key}", value)

    def text(self, key: str) -> str:
        """Return the non-empty string at `key`. Raises BuildSettingsInvalid."""
        value = self.values.get(key)
        if not isinstance(value, str) or not value:
            raise BuildSettingsInvalid(f"{self.name}.{key} must be a non-empty string")
        return value

    def texts(self, key: str, form: re.Pattern[str]) -> tuple[str, ...]:
        """Return the list of strings at `key`, each matching `form`, without duplicates; empty if missing."""
        value = self.values.get(key, [])
        if not isinstance(value, list) or not all(isinstance(v, str) and form.fullmatch(v) for v in value):
            raise BuildSettingsInvalid(
                f"{self.name}.{key} must be a list of strings that match {form.pattern}"
            )
        return tuple(dict.fromkeys(value))


def variable(environ: Mapping[str, str], name: str) -> str:
    """Return the non-empty environment variable. Raises BuildSettingsInvalid."""
    value = environ.get(name, "")
    if not value:
        raise BuildSettingsInvalid(f"the environment variable {name} is missing")
    return value


def json_variable(environ: Mapping[str, str], name: str) -> JsonObject:
    """Return the JSON object in an environment variable. Raises BuildSettingsInvalid."""
    try:
        value = json.loads(variable(environ, name))
    except json.JSONDecodeError as error:
        raise BuildSettingsInvalid(f"{name} is not JSON: {error}") from None
    if not isinstance(value, dict):
        raise BuildSettingsInvalid(f"{name} must be a JSON object")
    return JsonObject(name, value)
