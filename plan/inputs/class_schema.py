"""JSON Schema of a class: TypedDict, pydantic model, dataclass. Called by plan.inputs.find.

What the text does not tell becomes a schema that allows everything.
"""

import ast
import math
from typing import Any

from ..bindings import last_name
from .classes import ModuleClasses

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
_MAX_BASES = 20


def class_schema(
    name: str, classes: ModuleClasses, partial: bool = False, depth: int = 0
) -> dict[str, Any] | None:
    """Return the schema of a class; None without annotated fields. `partial`: no TypedDict requires any."""
    found = classes.find(name) if depth <= _MAX_DEPTH else None
    if found is None or not classes.source.take_step():
        return None
    node, classes = found
    properties: dict[str, Any] = {}
    required: dict[str, None] = {}
    for base in node.bases[:_MAX_BASES]:
        inherited = class_schema(last_name(base), classes, partial, depth + 1) or {}
        properties |= inherited.get("properties", {})
        required |= dict.fromkeys(inherited.get("required", ()))
    none_required = _is_typed_dict(node, classes) and (partial or _is_total_false(node))
    for statement in node.body:
        match statement:
            case ast.AnnAssign(target=ast.Name(id=field), annotation=annotation, value=value):
                if field.startswith("_") or last_name(annotation) == "ClassVar":
                    continue
                schema, optional = annotation_schema(annotation, classes, depth + 1)
                properties[field] = {**schema, **_of_value(value)}
                required.pop(field, None)
                if not optional and not none_required and _is_required(value):
                    required[field] = None
    if not properties:
        return None
    return {"type": "object", "properties": properties, **({"required": list(required)} if required else {})}


def annotation_schema(node: ast.expr, classes: ModuleClasses, depth: int) -> tuple[dict[str, Any], bool]:
    """Return the schema of an annotation, and whether it allows None or a missing value."""
    if depth > _MAX_DEPTH or not classes.source.take_step():
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


def _subscript(name: str, inner: ast.expr, classes: ModuleClasses, depth: int) -> tuple[dict[str, Any], bool]:
    parts = list(inner.elts) if isinstance(inner, ast.Tuple) else [inner]
    if name in _OPTIONAL_MARKS:
        return annotation_schema(parts[0], classes, depth + 1)[0], True
    if name in ("Annotated", "Required"):
        return annotation_schema(parts[0], classes, depth + 1)
    if name == "Union":
        return _union(parts, classes, depth)
    if name == "Literal":
        return _literal(parts)
    kind = _PLAIN_TYPES.get(name)
    if kind == "array":
        items = annotation_schema(parts[0], classes, depth + 1)[0]
        return {"type": "array", **({"items": items} if items else {})}, False
    return ({"type": kind} if kind else {}), False


def _literal(parts: list[ast.expr]) -> tuple[dict[str, Any], bool]:
    """Return the schema of `Literal[…]`, whose values are in the text and have a form in JSON.

    None among them only makes the field optional: the kube-apiserver drops a null of the plan.
    """
    try:
        values = list(map(ast.literal_eval, parts))
    except (ValueError, TypeError):
        return {}, False
    plain = [value for value in values if value is not None]
    return {"enum": plain} if plain and all(map(_is_plain, plain)) else {}, None in values


def _is_plain(value: object) -> bool:
    """Return whether a value is a text, a truth value or a number that JSON has."""
    return isinstance(value, str | int) or (isinstance(value, float) and math.isfinite(value))


def _union(parts: list[ast.expr], classes: ModuleClasses, depth: int) -> tuple[dict[str, Any], bool]:
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


def _is_typed_dict(node: ast.ClassDef, classes: ModuleClasses) -> bool:
    """Return whether it or a base in the source is a TypedDict."""
    pending, seen = [(node, classes)], {node}
    while pending:
        node, classes = pending.pop()
        for base in map(last_name, node.bases[:_MAX_BASES]):
            if base == "TypedDict":
                return True
            found = classes.find(base)
            if found and found[0] not in seen:
                seen.add(found[0])
                pending.append(found)
    return False


def _is_total_false(node: ast.ClassDef) -> bool:
    return any(
        keyword.arg == "total" and isinstance(keyword.value, ast.Constant) and keyword.value.value is False
        for keyword in node.keywords
    )
