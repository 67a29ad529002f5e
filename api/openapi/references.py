"""What a document has once and refers to: schemas with a title, and shared answers. Pure.

Called by `api.openapi.document`.
"""

from collections.abc import Mapping
from typing import Any

_ONE = ("items", "additionalProperties", "propertyNames", "not")
_MANY = ("anyOf", "oneOf", "allOf")


class Components:
    """The schemas of a document, by title, and the answers that several operations share."""

    def __init__(self) -> None:
        self.schemas: dict[str, Any] = {}
        self.responses: dict[str, Any] = {}

    def refer(self, schema: Any) -> Any:
        """The schema with references in the place of what has a title, itself included.

        Raises ValueError where two different schemas have one title.
        """
        if not isinstance(schema, Mapping):
            return schema
        found = {key: self._inner(key, value) for key, value in schema.items()}
        title = schema.get("title")
        if title is None:
            return found
        if self.schemas.setdefault(title, found) != found:
            raise ValueError(f"two schemas are called {title}")
        return {"$ref": f"#/components/schemas/{title}"}

    def _inner(self, key: str, value: Any) -> Any:
        if key == "properties":
            return {name: self.refer(inner) for name, inner in value.items()}
        if key in _ONE:
            return self.refer(value)
        if key in _MANY:
            return [self.refer(inner) for inner in value]
        return list(value) if isinstance(value, tuple) else value
