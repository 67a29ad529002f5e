"""Input schema of an entrypoint by reading its source and CrewAI's YAML files. Called by plan.make."""

import ast
import posixpath
import re
from collections.abc import Iterator
from typing import Any

from ..bindings import last_name, readable_module
from ..entrypoint import ROOTS
from ..errors import PlanError
from ..source import Files, text_of
from .class_schema import class_schema
from .classes import ModuleClasses, Source, classes_of

_PLACEHOLDER = re.compile(r"(?<!\{)\{([A-Za-z_][A-Za-z0-9_-]*)\}(?!\})")
_CREW_FILES = ("agents.yaml", "tasks.yaml", "agents.yml", "tasks.yml")


def find_input_schema(files: Files, entrypoint: str, path: str, python: str) -> dict[str, Any] | None:
    """Return the schema of the input of `entrypoint` in the file `path`; None if the source tells none.

    A function: the annotation of the parameter that gets the input. A graph: the state of the only StateGraph
    of the file. A flow: its state. A workflow: the only StartEvent of the file. Otherwise: the placeholders
    of CrewAI's YAML files. The class of an annotation or a state may be imported from the source.
    """
    tree = readable_module(files, path, python) if path.endswith(".py") else None
    if tree is None:
        return None
    classes = classes_of(tree, path, Source(files, python, [_import_root(entrypoint, path), *ROOTS]))
    name = entrypoint.partition(":")[2].partition(".")[0]
    for node in tree.body:
        match node:
            case ast.FunctionDef(name=found) | ast.AsyncFunctionDef(name=found) if found == name:
                return (
                    _of_function(node, classes) or _of_graph(tree, classes) or _of_placeholders(files, path)
                )
            case ast.ClassDef(name=found) if found == name:
                return (
                    _of_flow(node, classes) or _of_start_event(tree, classes) or _of_placeholders(files, path)
                )
    return _of_graph(tree, classes) or _of_start_event(tree, classes) or _of_placeholders(files, path)


def _import_root(entrypoint: str, path: str) -> str:
    """Return the directory that is on the path of the entrypoint in the file `path`."""
    module, colon, _ = entrypoint.partition(":")
    if not colon:
        return posixpath.dirname(path)
    return path.removesuffix(".py").removesuffix("/__init__").removesuffix(module.replace(".", "/"))


def _of_function(
    node: ast.FunctionDef | ast.AsyncFunctionDef, classes: ModuleClasses
) -> dict[str, Any] | None:
    arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
    named = [one for one in arguments if one.arg == "inputs"]
    given = named or (arguments if len(arguments) == 1 else [])
    return class_schema(last_name(given[0].annotation), classes) if given else None


def _of_flow(node: ast.ClassDef, classes: ModuleClasses) -> dict[str, Any] | None:
    for base in node.bases:
        if isinstance(base, ast.Subscript) and last_name(base) == "Flow":
            return class_schema(last_name(base.slice), classes, partial=True)
    return None


def _of_start_event(tree: ast.Module, classes: ModuleClasses) -> dict[str, Any] | None:
    events = [
        node.name
        for node in tree.body
        if isinstance(node, ast.ClassDef) and "StartEvent" in map(last_name, node.bases)
    ]
    return class_schema(events[0], classes) if len(events) == 1 else None


def _of_graph(tree: ast.Module, classes: ModuleClasses) -> dict[str, Any] | None:
    states = set(_graph_states(tree))
    return class_schema(states.pop(), classes, partial=True) if len(states) == 1 else None


def _graph_states(tree: ast.Module) -> Iterator[str]:
    """Yield the names of the classes of the input of each StateGraph."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and last_name(node.func) == "StateGraph":
            named = {keyword.arg: keyword.value for keyword in node.keywords}
            keys = ("input_schema", "input", "state_schema")
            state = next((named[key] for key in keys if key in named), node.args[0] if node.args else None)
            yield last_name(state)


def _of_placeholders(files: Files, path: str) -> dict[str, Any] | None:
    """Return a text field for each `{name}` in CrewAI's YAML files beside the entrypoint's file."""
    directory = posixpath.dirname(path)
    names: dict[str, None] = {}
    for file in sorted(files):
        if posixpath.basename(file) not in _CREW_FILES:
            continue
        if posixpath.dirname(file) not in (directory, posixpath.join(directory, "config")):
            continue
        try:
            lines = text_of(files, file).splitlines()
        except PlanError:
            continue
        written = "\n".join(line for line in lines if not line.lstrip().startswith("#"))
        names |= dict.fromkeys(_PLACEHOLDER.findall(written))
    if not names:
        return None
    return {
        "type": "object",
        "properties": {name: {"type": "string"} for name in names},
        "required": list(names),
    }
