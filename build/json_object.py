"""JSON in an environment variable, read key by key. Called by build.settings and build.registry.prune_settings."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


class SettingsInvalid(Exception):
    """The pod was made wrongly; names the variable and the key."""


@dataclass(frozen=True)
class JsonObject:
    """An object and its name for messages."""

    name: str
    values: Mapping[str, Any]

    def object(self, key: str, default: Mapping[str, Any] | None = None) -> "JsonObject":
        """The object at `key`. Raises SettingsInvalid."""
        value = self.values.get(key, default)
        if not isinstance(value, Mapping):
            raise SettingsInvalid(f"{self.name}.{key} must be an object")
        return JsonObject(f"{self.name}.{key}", value)

    def text(self, key: str) -> str:
        """The text at `key`, not empty. Raises SettingsInvalid."""
        value = self.values.get(key)
        if not isinstance(value, str) or not value:
            raise SettingsInvalid(f"{self.name}.{key} must be a text that is not empty")
        return value

    def texts(self, key: str, form: re.Pattern[str]) -> tuple[str, ...]:
        """The list of texts at `key`, each of which has that form; empty where there is none."""
        value = self.values.get(key, [])
        if not isinstance(value, list) or not all(isinstance(v, str) and form.fullmatch(v) for v in value):
            raise SettingsInvalid(f"{self.name}.{key} must be a list of texts like {form.pattern}")
        return tuple(dict.fromkeys(value))


def variable(environ: Mapping[str, str], name: str) -> str:
    """The environment variable, not empty. Raises SettingsInvalid."""
    value = environ.get(name, "")
    if not value:
        raise SettingsInvalid(f"the environment variable {name} is missing")
    return value


def json_variable(environ: Mapping[str, str], name: str) -> JsonObject:
    """The JSON object in an environment variable. Raises SettingsInvalid."""
    try:
        value = json.loads(variable(environ, name))
    except json.JSONDecodeError as error:
        raise SettingsInvalid(f"{name} is not JSON: {error}") from None
    if not isinstance(value, dict):
        raise SettingsInvalid(f"{name} must be a JSON object")
    return JsonObject(name, value)
