"""[tool.crewai] in pyproject.toml, which CrewAI's own tools write. Called by plan.config.configuration.

It names a kind, not an object: the crew or flow class is found by reading the
sources, never by importing them.
"""

import ast
import re

from ..bindings import parse_module
from ..errors import CONFIG_INVALID, ENTRYPOINT_NOT_FOUND, PlanError, listed
from ..source import Files
from .configuration import Configuration
from .toml_tables import Table

_LIMIT = 200
_ELSEWHERE = frozenset({"tests", "test", "site-packages", ".venv", "venv", "node_modules"})
_USUAL = {"crew": re.compile(r"(src/)?[^/]+/crew\.py"), "flow": re.compile(r"(src/)?[^/]+/main\.py")}


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
    everywhere = _classes(files, kind)
    usual = _USUAL[kind]
    # Where `crewai create` puts it; a flow's crews lie deeper, and examples may lie anywhere.
    found = [name for path, name in everywhere if usual.fullmatch(path)] or [name for _, name in everywhere]
    if len(found) != 1:
        problem = f"there are several: {listed(found)}" if found else "none was found in the sources"
        wanted = "class decorated with @CrewBase" if kind == "crew" else "class derived from Flow"
        raise PlanError(
            ENTRYPOINT_NOT_FOUND,
            f"pyproject.toml: [tool.crewai] asks for a {wanted}; {problem}",
            'Add a crew.toml with [deployment] and entrypoint = "module:object".',
        )
    return Configuration(origin="pyproject.toml: [tool.crewai]", framework="crewai", entrypoint=found[0])


def _classes(files: Files, kind: str) -> list[tuple[str, str]]:
    """The files and entrypoints of what could be meant, those that lie least deep first."""
    names = []
    candidates = [path for path in files if path.endswith(".py") and not _ELSEWHERE & set(path.split("/"))]
    candidates.sort(key=lambda path: (path.count("/"), path))
    for path in candidates[:_LIMIT]:
        if (b"CrewBase" if kind == "crew" else b"Flow") not in files[path]:
            continue
        module = path.removeprefix("src/").removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        tree = parse_module(path, files[path], None)
        for node in tree.body if tree else ():
            if isinstance(node, ast.ClassDef) and _is(node, kind):
                names.append((path, f"{module}:{node.name}"))
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
