"""Conversion between the camelCase of Kubernetes and the snake_case of the API.

The schema of the CRD decides which keys are field names (renamed) and which belong to the
user, such as labels or resource names (kept). Pure. Called by `api.v1.*.schema` and
`api.v1.projects.view`.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any

Schema = Mapping[str, Any]


def snake(name: str) -> str:
    """Convert `activeDeployment` to `active_deployment`."""
    return re.sub(r"([A-Z])", lambda match: "_" + match[1].lower(), name)


def camel(name: str) -> str:
    """Convert `active_deployment` to `activeDeployment`."""
    return re.sub(r"_([a-z])", lambda match: match[1].upper(), name)


def to_snake(schema: Schema, value: Any) -> Any:
    """Convert a value of a Kubernetes object to its API form."""
    return _rename(schema, value, snake, lambda key: key)


def to_camel(schema: Schema, value: Any) -> Any:
    """Convert a value of the API to its Kubernetes form; `schema` is that of the Kubernetes object."""
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


_COPIED_KEYWORDS = (
    "type", "description", "enum", "pattern", "format", "minimum", "maximum", "minLength", "maxLength",
    "minItems", "maxItems", "maxProperties",
)  # fmt: skip


def request_schema(schema: Schema, merge: bool = False) -> dict[str, Any]:
    """Return the JSON Schema of a request in API form; it rejects unknown fields.

    `merge`: the schema of a merge patch: no field is required, and null removes a field.
    """
    result: dict[str, Any] = {key: schema[key] for key in _COPIED_KEYWORDS if key in schema}
    if "anyOf" in schema:
        result["anyOf"] = [dict(choice) for choice in schema["anyOf"]]
    if "properties" in schema:
        result["properties"] = {
            snake(key): request_schema(inner, merge) for key, inner in schema["properties"].items()
        }
        result["additionalProperties"] = False
        if "required" in schema and not merge:
            result["required"] = [snake(key) for key in schema["required"]]
    elif isinstance(schema.get("additionalProperties"), Mapping):
        result["additionalProperties"] = request_schema(schema["additionalProperties"], merge)
    if "items" in schema:
        # A merge patch replaces lists whole (RFC 7386), so their items must be complete.
        result["items"] = request_schema(schema["items"])
    if merge and isinstance(result.get("type"), str):
        result["type"] = [result["type"], "null"]
        if "enum" in result:
            result["enum"] = [*result["enum"], None]
    elif merge and "anyOf" in result:
        result["anyOf"].append({"type": "null"})
    return result
