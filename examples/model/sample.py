"""A value that satisfies a JSON Schema, always the same one."""

from typing import Any

DEPTH = 12
FORMATS = {
    "date": "2026-01-01",
    "date-time": "2026-01-01T00:00:00Z",
    "time": "00:00:00Z",
    "email": "reader@example.com",
    "uri": "https://example.com/",
    "uuid": "00000000-0000-4000-8000-000000000000",
}


def sample(schema: Any) -> Any:
    """Return a value for the schema; `$ref` leads to its own `$defs`."""
    whole = schema if isinstance(schema, dict) else {}
    return _value(whole, whole, DEPTH)


def _value(schema: dict[str, Any], root: dict[str, Any], depth: int) -> Any:
    if "$ref" in schema:
        found = root
        for part in str(schema["$ref"]).split("/")[1:]:
            found = found.get(part, {})
        return _value(found, root, depth - 1) if depth else None
    if "const" in schema:
        return schema["const"]
    if schema.get("enum"):
        # The last one: in a choice of the next step it is the end more often than the first.
        return schema["enum"][-1]
    for name in ("anyOf", "oneOf", "allOf"):
        if schema.get(name):
            merged = {key: value for key, value in schema.items() if key != name}
            choices = schema[name] if name == "allOf" else schema[name][:1]
            for choice in choices:
                merged = {**merged, **choice}
            return _value(merged, root, depth - 1) if depth else None
    kind = schema.get("type")
    kind = kind[0] if isinstance(kind, list) else kind
    if kind == "object" or "properties" in schema:
        wanted = schema.get("required", schema.get("properties", {}))
        properties = schema.get("properties") or {}
        return {name: _value(properties.get(name) or {}, root, depth - 1) for name in wanted} if depth else {}
    if kind == "array":
        count = max(1, int(schema.get("minItems", 1))) if depth else int(schema.get("minItems", 0))
        return [_value(schema.get("items") or {}, root, max(0, depth - 1)) for _ in range(count)]
    if kind in ("integer", "number"):
        return _number(schema)
    if kind == "boolean":
        return True
    if kind == "null":
        return None
    text = FORMATS.get(str(schema.get("format")), "example")
    text = text.ljust(int(schema.get("minLength", 0)), "x")
    return text[: schema["maxLength"]] if "maxLength" in schema else text


def _number(schema: dict[str, Any]) -> int | float:
    low = schema.get("minimum", schema.get("exclusiveMinimum"))
    high = schema.get("maximum", schema.get("exclusiveMaximum"))
    if "exclusiveMinimum" in schema:
        low = schema["exclusiveMinimum"] + (1 if schema.get("type") == "integer" else 0.5)
    found = 1 if low is None else max(1, low)
    return found if high is None else min(found, high)
