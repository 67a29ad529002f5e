"""The table `[run.inputs]`: the fields of a run's input. Called by plan.config.configuration."""

import json
import re
from collections.abc import Mapping
from typing import Any

from .toml_tables import TomlTable

TYPES = ("string", "integer", "number", "boolean", "array", "object")
_KEYS = ("type", "description", "default", "enum", "required")
_NAME = re.compile(r"[^\W\d][\w-]{0,63}")
# The whole plan must fit into a build pod's termination message.
_MAX_BYTES = 1024


def read_inputs(run: TomlTable) -> Mapping[str, Any] | None:
    """Return the JSON Schema that `[run.inputs]` declares; None without it. Raises PlanError(ConfigInvalid).

    A field is the name of a type, or a table. It is required unless it has a default or `required = false`.
    """
    table = run.table("inputs")
    if table is None:
        return None
    properties: dict[str, Any] = {}
    required: list[str] = []
    for name, given in table.values.items():
        if not _NAME.fullmatch(name):
            raise table.error(name, "is not a valid name", "Use letters, digits, _ and -.")
        field = table.table(name) if isinstance(given, dict) else None
        if field is None and given not in TYPES:
            raise table.error(
                name, f"must be a type or a table, not {given!r:.100}", f"Types: {', '.join(TYPES)}."
            )
        properties[name], is_required = _field(field) if field else ({"type": given}, True)
        required += [name] if is_required else []
    schema: dict[str, Any] = {"type": "object", "properties": properties}
    if required:
        schema["required"] = required
    _check_json(table, schema)
    return schema


def _field(field: TomlTable) -> tuple[dict[str, Any], bool]:
    """Return the schema of a field, and whether it is required."""
    field.allow_only(*_KEYS)
    schema = {key: field.values[key] for key in _KEYS[:-1] if key in field.values}
    if "type" in schema and schema["type"] not in TYPES:
        raise field.error("type", f"is {schema['type']!r:.100}", f"Types: {', '.join(TYPES)}.")
    field.text_at("description", "What the report is about.")
    if "enum" in schema and not (isinstance(schema["enum"], list) and schema["enum"]):
        raise field.error("enum", "must be a list with at least one value", 'For example: enum = ["a", "b"].')
    required = field.values.get("required", "default" not in schema)
    if not isinstance(required, bool):
        raise field.error("required", "must be true or false", "For example: required = false.")
    return schema, required


def _check_json(table: TomlTable, schema: Mapping[str, Any]) -> None:
    try:
        size = len(json.dumps(schema, allow_nan=False, separators=(",", ":")))
    except (TypeError, ValueError):
        name = next(iter(table.values))
        raise table.error(
            name,
            "or a field after it has a date, nan or inf, which JSON does not have",
            "Use text or numbers.",
        ) from None
    if size > _MAX_BYTES:
        name = next(iter(table.values))
        raise table.error(
            name,
            f"and the other fields have {size} bytes as JSON Schema",
            f"Use at most {_MAX_BYTES}: fewer or shorter descriptions.",
        )
