"""Kubernetes' camelCase and the API's snake_case, and the one schema in both.

The CRD's schema says which keys are names of fields (renamed) and which are a
user's own, such as labels or resource names (left alone). Pure. Called by
`api.v1.schemas` and by `api.v1.projects.view`.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any

Schema = Mapping[str, Any]


def snake(name: str) -> str:
    """`activeDeployment` → `active_deployment`."""
    return re.sub(r"([A-Z])", lambda found: "_" + found[1].lower(), name)


def camel(name: str) -> str:
    """`active_deployment` → `activeDeployment`."""
    return re.sub(r"_([a-z])", lambda found: found[1].upper(), name)


def to_snake(schema: Schema, value: Any) -> Any:
    """An object's value as the API shows it."""
    return _rename(schema, value, snake, lambda key: key)


def to_camel(schema: Schema, value: Any) -> Any:
    """A value of the API as the object has it; `schema` is the object's."""
    return _rename(schema, value, camel, camel)


def _rename(schema: Schema, value: Any, name: Callable[[str], str], field: Callable[[str], str]) -> Any:
    properties: Schema = schema.get("properties") or {}
    if isinstance(value, Mapping) and properties:
        return {
            name(key): _rename(properties.get(field(key)) or {}, v, name, field) for key, v in value.items()
        }
    if isinstance(value, list):
        return [_rename(schema.get("items") or {}, item, name, field) for item in value]
    return value


_KEPT = ("type", "description", "enum", "pattern", "format", "minimum", "maximum", "minLength", "maxLength",
         "minItems", "maxItems", "maxProperties")  # fmt: skip


def request_schema(schema: Schema, merge: bool = False) -> dict[str, Any]:
    """A JSON Schema for the API's form of what `schema` describes: unknown fields are refused.

    With `merge`, for a merge patch: nothing is required, and null removes a field.
    """
    found: dict[str, Any] = {key: schema[key] for key in _KEPT if key in schema}
    if "anyOf" in schema:
        found["anyOf"] = [dict(choice) for choice in schema["anyOf"]]
    if "properties" in schema:
        found["properties"] = {
            snake(key): request_schema(inner, merge) for key, inner in schema["properties"].items()
        }
        found["additionalProperties"] = False
        if "required" in schema and not merge:
            found["required"] = [snake(key) for key in schema["required"]]
    elif isinstance(schema.get("additionalProperties"), Mapping):
        found["additionalProperties"] = request_schema(schema["additionalProperties"], merge)
    if "items" in schema:
        # A merge patch replaces lists whole (RFC 7386), so their items are complete.
        found["items"] = request_schema(schema["items"])
    if merge and isinstance(found.get("type"), str):
        found["type"] = [found["type"], "null"]
    return found
