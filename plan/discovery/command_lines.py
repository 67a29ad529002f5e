"""Command lines of click and typer that a module defines. Called by .discover and plan.file_entrypoint."""

import ast
from collections.abc import Iterator

from ..bindings import last_name

_PACKAGES = frozenset({"click", "rich_click", "typer"})


def command_lines(tree: ast.Module) -> Iterator[str]:
    """Yield the objects of typer.Typer, and the functions with @click.command or @click.group."""
    imported = {
        alias.asname or alias.name
        for node in tree.body
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
        if (getattr(node, "module", None) or alias.name) in _PACKAGES
    }
    for node in tree.body:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call() as value):
                if last_name(value) == "Typer" and _owner(value) in imported:
                    yield name
            case ast.FunctionDef(name=name, decorator_list=marks):
                if any(
                    last_name(mark) in ("command", "group") and _owner(mark) in imported for mark in marks
                ):
                    yield name


def _owner(node: ast.expr) -> str | None:
    """Return the first name of an expression, `click` of `click.command()`; None if it has none."""
    while isinstance(node, ast.Call | ast.Attribute):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else None
