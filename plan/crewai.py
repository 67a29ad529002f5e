"""[tool.crewai] in pyproject.toml, which CrewAI's own tools write. Called by plan.configuration.

It names a kind, not an object: the crew or flow class is found by reading the
sources, never by importing them.
"""

import ast

from plan.bindings import parse_module
from plan.configuration import Configuration
from plan.errors import CONFIG_INVALID, ENTRYPOINT_NOT_FOUND, PlanError, listed
from plan.source import Files
from plan.tables import Table

_LIMIT = 200


def read_crewai(files: Files, table: Table, crew: str | None) -> Configuration:
    """The one crew or flow of the tree. Raises PlanError(ConfigInvalid, EntrypointNotFound)."""
    if crew is not None:
        raise PlanError(
            CONFIG_INVALID,
            f"crew {crew!r} is asked for, but [tool.crewai] cannot hold several",
            f"Add a crew.toml with [deployments.{crew}], or leave the crew's name out.",
        )
    kind = table.word("type", "crew") or "crew"
    if kind not in ("crew", "flow"):
        raise table.wrong("type", f"is {kind!r}", 'Write type = "crew" or type = "flow".')
    found = tuple(_classes(files, kind))
    if len(found) != 1:
        problem = f"there are several: {listed(found)}" if found else "none was found in the sources"
        wanted = "class decorated with @CrewBase" if kind == "crew" else "class derived from Flow"
        raise PlanError(
            ENTRYPOINT_NOT_FOUND,
            f"pyproject.toml: [tool.crewai] asks for a {wanted}; {problem}",
            'Add a crew.toml with [deployment] and entrypoint = "module:object".',
        )
    return Configuration(origin="pyproject.toml: [tool.crewai]", framework="crewai", entrypoint=found[0])


def _classes(files: Files, kind: str) -> list[str]:
    names = []
    candidates = sorted(path for path in files if path.endswith(".py") and "tests/" not in path)
    for path in candidates[:_LIMIT]:
        if (b"CrewBase" if kind == "crew" else b"Flow") not in files[path]:
            continue
        module = path.removeprefix("src/").removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        tree = parse_module(path, files[path], None)
        for node in tree.body if tree else ():
            if isinstance(node, ast.ClassDef) and _is(node, kind):
                names.append(f"{module}:{node.name}")
    return names


def _is(node: ast.ClassDef, kind: str) -> bool:
    marks = node.decorator_list if kind == "crew" else node.bases
    return any(_last_name(mark) == ("CrewBase" if kind == "crew" else "Flow") for mark in marks)


def _last_name(node: ast.expr) -> str:
    if isinstance(node, ast.Subscript):
        node = node.value
    if isinstance(node, ast.Call):
        node = node.func
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""
