"""Fields of a CRD as tables, from its schema. Pure. Called by `dev.site.sections` and by tests."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from dev.site.text import cell, code, table

_TIMES = {"date-time": "time"}


@dataclass(frozen=True)
class SchemaField:
    """One field; `path` is relative to `spec` or `status`."""

    path: str
    type: str
    needed: bool
    description: str
    default: Any
    choices: tuple[str, ...]


def walk(schema: Mapping[str, Any], path: str = "") -> Iterable[SchemaField]:
    """Yield all fields of an object's schema, parents before children; `[]` marks the items of a list."""
    needed = schema.get("required", ())
    for name, child in schema.get("properties", {}).items():
        here = f"{path}.{name}" if path else name
        items = child.get("items", {})
        yield SchemaField(
            here,
            _type(child),
            name in needed,
            str(child.get("description", "")),
            child.get("default"),
            tuple(child.get("enum", ())),
        )
        yield from walk(child, here)
        yield from walk(items, here + "[]")


def undescribed(version: Mapping[str, Any]) -> list[str]:
    """Return the fields of spec and status without a description."""
    return [
        f"{part}.{field.path}"
        for part in ("spec", "status")
        for field in walk(_part(version, part))
        if not field.description
    ]


def render(version: Mapping[str, Any], part: str) -> str:
    """Return the table of `spec` or `status`."""
    rows = [
        (code(field.path), cell(field.type), _meaning(field))
        for field in walk(_part(version, part))
        if _is_listed(field)
    ]
    return table(("field", "type", "meaning"), rows)


def refusals(version: Mapping[str, Any]) -> str:
    """Return the validation messages of a CRD, as the apiserver prints them."""
    messages = dict.fromkeys(_messages(version["schema"]["openAPIV3Schema"]))
    return "\n".join(f"- {cell(message)}" for message in messages) + "\n"


def columns(version: Mapping[str, Any]) -> str:
    """Return the columns of `kubectl get`; `wide` marks those that need `-o wide`."""
    rows = [
        (
            code(column["name"].upper()),
            "wide" if column.get("priority") else "",
            cell(column.get("description", "")),
        )
        for column in version["additionalPrinterColumns"]
        if column["name"] != "Age"
    ]
    return table(("column", "", "meaning"), rows)


def _part(version: Mapping[str, Any], part: str) -> Mapping[str, Any]:
    schema: Mapping[str, Any] = version["schema"]["openAPIV3Schema"]["properties"][part]
    return schema


def _is_listed(field: SchemaField) -> bool:
    # The fields of a condition are defined by Kubernetes and the same in every kind.
    return not field.path.startswith("conditions[].")


def _meaning(field: SchemaField) -> str:
    parts = [cell(field.description)]
    if field.choices:
        parts.append("One of " + ", ".join(code(choice) for choice in field.choices) + ".")
    if field.default is not None and not isinstance(field.default, list | dict):
        parts.append(f"Default {code(field.default)}.")
    if field.needed:
        parts.append("Required.")
    return " ".join(part for part in parts if part)


def _type(schema: Mapping[str, Any]) -> str:
    if schema.get("x-kubernetes-int-or-string"):
        return "integer or string"
    kind = str(schema.get("type", "any"))
    if kind == "array":
        return f"list of {_type(schema.get('items', {}))}s"
    if kind == "object" and "additionalProperties" in schema:
        return f"map to {_type(schema['additionalProperties'])}"
    if kind == "string":
        return _TIMES.get(str(schema.get("format")), kind)
    return kind


def _messages(schema: Mapping[str, Any]) -> Iterable[str]:
    for rule in schema.get("x-kubernetes-validations", ()):
        yield str(rule["message"])
    for child in schema.get("properties", {}).values():
        yield from _messages(child)
    for inner in ("items", "additionalProperties"):
        if isinstance(schema.get(inner), Mapping):
            yield from _messages(schema[inner])
