"""JSON Schema of a class in the same file: TypedDict, pydantic model, dataclass. Called by plan.inputs.find.

What the text does not tell becomes a schema that allows everything.
"""

import ast
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..bindings import last_name

_PLAIN_TYPES = {
    "str": "string",
    "int": "integer",
    "float": "number",
    "bool": "boolean",
    "list": "array",
    "List": "array",
    "Sequence": "array",
    "dict": "object",
    "Dict": "object",
    "Mapping": "object",
}
_OPTIONAL_MARKS = ("NotRequired", "Optional")
_MAX_DEPTH = 4
_MAX_STEPS = 500


@dataclass
class ClassTable:
    """Classes at the top level of a module, by name, and the look-ups that are left."""

    by_name: Mapping[str, ast.ClassDef]
    steps_left: int = _MAX_STEPS

    def take_step(self) -> bool:
        """Count a step; return whether one was left. Classes that contain each other have endless fields."""
        self.steps_left -= 1
        return self.steps_left >= 0


def classes_of(tree: ast.Module) -> ClassTable:
    """Return the classes at the top level of a module."""
    return ClassTable({node.name: node for node in tree.body if isinstance(node, ast.ClassDef)})


def class_schema(
    name: str, classes: ClassTable, partial: bool = False, depth: int = 0
) -> dict[str, Any] | None:
    """Return the schema of a class; None without annotated fields. `partial`: no TypedDict requires any."""
    node = classes.by_name.get(name)
    if node is None or depth > _MAX_DEPTH or not classes.take_step():
        return None
    properties: dict[str, Any] = {}
    required: dict[str, None] = {}
    for base in node.bases:
        inherited = class_schema(last_name(base), classes, partial, depth + 1) or {}
        properties |= inherited.get("properties", {})
        required |= dict.fromkeys(inherited.get("required", ()))
    none_required = _is_typed_dict(node, classes) and (partial or _is_total_false(node))
    for statement in node.body:
        match statement:
            case ast.AnnAssign(target=ast.Name(id=field), annotation=annotation, value=value):
                if field.startswith("_") or last_name(annotation) == "ClassVar":
                    continue
                found, optional = annotation_schema(annotation, classes, depth + 1)
                properties[field] = {**found, **_of_value(value)}
                required.pop(field, None)
                if not optional and not none_required and _is_required(value):
                    required[field] = None
    if not properties:
        return None
    return {"type": "object", "properties": properties, **({"required": list(required)} if required else {})}


def annotation_schema(node: ast.expr, classes: ClassTable, depth: int) -> tuple[dict[str, Any], bool]:
    """Return the schema of an annotation, and whether it allows None or a missing value."""
    if depth > _MAX_DEPTH or not classes.take_step():
        return {}, False
    match node:
        case ast.Constant(value=str(text)):
            try:
                return annotation_schema(ast.parse(text, mode="eval").body, classes, depth + 1)
            except SyntaxError:
                return {}, False
        case ast.BinOp(op=ast.BitOr()):
            return _union([node.left, node.right], classes, depth)
        case ast.Subscript(value=value, slice=inner):
            return _subscript(last_name(value), inner, classes, depth)
    name = last_name(node)
    if name in _PLAIN_TYPES:
        return {"type": _PLAIN_TYPES[name]}, False
    return class_schema(name, classes, depth=depth + 1) or {}, False


def _subscript(name: str, inner: ast.expr, classes: ClassTable, depth: int) -> tuple[dict[str, Any], bool]:
    parts = list(inner.elts) if isinstance(inner, ast.Tuple) else [inner]
    if name in _OPTIONAL_MARKS:
        return annotation_schema(parts[0], classes, depth + 1)[0], True
    if name in ("Annotated", "Required"):
        return annotation_schema(parts[0], classes, depth + 1)
    if name == "Union":
        return _union(parts, classes, depth)
    if name == "Literal":
        return _literal(parts), False
    kind = _PLAIN_TYPES.get(name)
    if kind == "array":
        items = annotation_schema(parts[0], classes, depth + 1)[0]
        return {"type": "array", **({"items": items} if items else {})}, False
    return ({"type": kind} if kind else {}), False


def _literal(parts: list[ast.expr]) -> dict[str, Any]:
    """Return the schema of `Literal[…]`, whose values are in the text and have a form in JSON."""
    try:
        values = list(map(ast.literal_eval, parts))
    except (ValueError, TypeError):
        return {}
    return {"enum": values} if all(value is None or _is_plain(value) for value in values) else {}


def _is_plain(value: object) -> bool:
    """Return whether a value is a text, a truth value or a number that JSON has."""
    return isinstance(value, str | int) or (isinstance(value, float) and math.isfinite(value))


def _union(parts: list[ast.expr], classes: ClassTable, depth: int) -> tuple[dict[str, Any], bool]:
    others = [part for part in parts if not (isinstance(part, ast.Constant) and part.value is None)]
    optional = len(others) < len(parts)
    if len(others) != 1:
        return {}, optional
    return annotation_schema(others[0], classes, depth + 1)[0], optional


def _of_value(value: ast.expr | None) -> dict[str, Any]:
    """Return default and description that a field's value tells."""
    if isinstance(value, ast.Constant) and _is_plain(value.value):
        return {"default": value.value}
    if not (isinstance(value, ast.Call) and last_name(value.func) == "Field"):
        return {}
    named = {keyword.arg: keyword.value for keyword in value.keywords}
    found = _of_value(named.get("default") or (value.args[0] if value.args else None))
    description = named.get("description")
    if isinstance(description, ast.Constant) and isinstance(description.value, str):
        found["description"] = description.value
    return found


def _is_required(value: ast.expr | None) -> bool:
    if isinstance(value, ast.Call) and last_name(value.func) == "Field":
        first = value.args[0] if value.args else None
        given = {keyword.arg for keyword in value.keywords}
        needs = first is None or (isinstance(first, ast.Constant) and first.value is ...)
        return needs and not given & {"default", "default_factory"}
    return value is None


def _is_typed_dict(node: ast.ClassDef, classes: ClassTable) -> bool:
    """Return whether it or a base in the file is a TypedDict; LangGraph's MessagesState is one."""
    pending, seen = [node], {node.name}
    while pending:
        for base in map(last_name, pending.pop().bases):
            if base in ("TypedDict", "MessagesState"):
                return True
            if base in classes.by_name and base not in seen:
                seen.add(base)
                pending.append(classes.by_name[base])
    return False


def _is_total_false(node: ast.ClassDef) -> bool:
    return any(
        keyword.arg == "total" and isinstance(keyword.value, ast.Constant) and keyword.value.value is False
        for keyword in node.keywords
    )
