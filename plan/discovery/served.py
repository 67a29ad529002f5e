"""Entrypoints that the module of a server calls, for a hint. Called by .discover."""

import ast
from collections.abc import Iterator

from ..bindings import import_start, readable_module
from ..entrypoint import module_file
from ..source import Files
from .frameworks import imported_packages, is_framework
from .import_effects import OWN_RUN_METHODS, RUN_METHODS
from .module_objects import runnable_classes


def served_entrypoints(files: Files, path: str, python: str) -> tuple[str, ...]:
    """Return `module:object` of each object that the module at `path` imports from the source and calls.

    These are functions, classes of crews, and objects of which a method runs them, in modules that import a
    framework. `python` is the crew's version.
    """
    tree = readable_module(files, path, python)
    if tree is None:
        return ()
    names = dict(_imports(tree, path))
    entrypoints = (
        _entrypoint(files, [*names[first], *rest], python) for first, *rest in _called(tree) if first in names
    )
    return tuple(dict.fromkeys(each for each in entrypoints if each))


def _imports(tree: ast.Module, path: str) -> Iterator[tuple[str, list[str]]]:
    """Yield the names that imports bind, each with the parts of what it stands for."""
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=aliases):
                for alias in aliases:
                    parts = alias.name.split(".")
                    yield (alias.asname, parts) if alias.asname else (parts[0], parts[:1])
            case ast.ImportFrom(module=module, names=aliases):
                start = import_start(node, path.removeprefix("src/"))
                package = start.split("/") if start else []
                for alias in aliases:
                    inner = module.split(".") if module else []
                    yield alias.asname or alias.name, [*package, *inner, alias.name]


def _called(tree: ast.Module) -> Iterator[list[str]]:
    """Yield the dotted names that are called, or given to a call, such as one that starts a thread."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            for each in (node.func, *node.args):
                if parts := _dotted(each):
                    yield parts


def _dotted(node: ast.expr) -> list[str]:
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.insert(0, node.attr)
        node = node.value
    return [node.id, *parts] if isinstance(node, ast.Name) else []


def _entrypoint(files: Files, parts: list[str], python: str) -> str | None:
    """Return the entrypoint of the longest module of the source in a dotted name; None if there is none."""
    for length in range(len(parts) - 1, 0, -1):
        module = ".".join(parts[:length])
        if path := module_file(files, module):
            tree = readable_module(files, path, python)
            name, *methods = parts[length:]
            return f"{module}:{name}" if tree and _can_run(tree, name, methods) else None
    return None


def _can_run(tree: ast.Module, name: str, methods: list[str]) -> bool:
    """Return whether a run could call the object `name` of a module that makes agents."""
    if not any(map(is_framework, imported_packages(tree))):
        return False
    runs = bool(methods) and methods[0] in RUN_METHODS | OWN_RUN_METHODS
    for node in tree.body:
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() if node.name == name:
                return not methods
            case ast.Assign(targets=[ast.Name(id=found)], value=ast.Call()) if found == name:
                return runs
    return name in runnable_classes(tree)
