"""Shared components of the document: schemas with a title, and error responses. Pure.

Called by `api.openapi.document`.
"""

from collections.abc import Mapping
from typing import Any

_SCHEMA_KEYWORDS = ("items", "additionalProperties", "propertyNames", "not")
_SCHEMA_LIST_KEYWORDS = ("anyOf", "oneOf", "allOf")


class Components:
    """Schemas by title, and responses shared by several operations."""

    def __init__(self) -> None:
        self.schemas: dict[str, Any] = {}
        self.responses: dict[str, Any] = {}

    def refer(self, schema: Any) -> Any:
        """Return the schema with titled schemas, including itself, replaced by references.

        Raises ValueError if two different schemas share a title.
        """
        if not isinstance(schema, Mapping):
            return schema
        result = {key: self._inner(key, value) for key, value in schema.items()}
        title = schema.get("title")
        if title is None:
            return result
        if self.schemas.setdefault(title, result) != result:
            raise ValueError(f"two schemas are called {title}")
        return {"$ref": f"#/components/schemas/{title}"}

    def _inner(self, key: str, value: Any) -> Any:
        if key == "properties":
            return {name: self.refer(inner) for name, inner in value.items()}
        if key in _SCHEMA_KEYWORDS:
            return self.refer(value)
        if key in _SCHEMA_LIST_KEYWORDS:
            return [self.refer(inner) for inner in value]
        return list(value) if isinstance(value, tuple) else value
