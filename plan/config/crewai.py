"""[tool.crewai] in pyproject.toml, written by CrewAI's tools. Called by plan.config.configuration.

It declares a type, not an object: the crew or flow class is found by static analysis, never by importing.
"""

import ast
import re

from ..bindings import parse_module
from ..errors import CONFIG_INVALID, ENTRYPOINT_NOT_FOUND, PlanError, join_limited
from ..source import Files
from .configuration import Configuration
from .toml_tables import TomlTable

_MAX_FILES = 200
_SKIPPED_DIRECTORIES = frozenset({"tests", "test", "site-packages", ".venv", "venv", "node_modules"})
_USUAL_PATHS = {"crew": re.compile(r"(src/)?[^/]+/crew\.py"), "flow": re.compile(r"(src/)?[^/]+/main\.py")}


def read_crewai(files: Files, table: TomlTable, crew: str | None) -> Configuration:
    """Return the configuration of the only crew or flow. Raises ConfigInvalid or EntrypointNotFound."""
    if crew is not None:
        raise PlanError(
            CONFIG_INVALID,
            f"crew {crew!r} is requested, but [tool.crewai] supports only one crew",
            f"Add a crew.toml with [deployments.{crew}], or omit the crew's name.",
        )
    kind = table.text_at("type", "crew") or "crew"
    if kind not in ("crew", "flow"):
        raise table.error("type", f"is {kind!r}", 'Write type = "crew" or type = "flow".')
    candidates = _find_classes(files, kind)
    usual_path = _USUAL_PATHS[kind]
    # `crewai create` uses these paths; a flow's crews are in deeper directories, examples anywhere.
    names = [name for path, name in candidates if usual_path.fullmatch(path)] or [
        name for _, name in candidates
    ]
    if len(names) != 1:
        problem = f"there are several: {join_limited(names)}" if names else "none was found in the sources"
        expected = "class decorated with @CrewBase" if kind == "crew" else "class derived from Flow"
        raise PlanError(
            ENTRYPOINT_NOT_FOUND,
            f"pyproject.toml: [tool.crewai] requires a {expected}; {problem}",
            'Add a crew.toml with [deployment] and entrypoint = "module:object".',
        )
    unknown = table.unknown("type")
    return Configuration(
        origin="pyproject.toml: [tool.crewai]",
        framework="crewai",
        entrypoint=names[0],
        notes=(f"pyproject.toml: no effect here: {join_limited(unknown)}",) if unknown else (),
    )


def _find_classes(files: Files, kind: str) -> list[tuple[str, str]]:
    """Return files and entrypoints of the candidates, ordered by depth."""
    names = []
    candidates = [
        path for path in files if path.endswith(".py") and not _SKIPPED_DIRECTORIES & set(path.split("/"))
    ]
    candidates.sort(key=lambda path: (path.count("/"), path))
    for path in candidates[:_MAX_FILES]:
        if (b"CrewBase" if kind == "crew" else b"Flow") not in files[path]:
            continue
        module = path.removeprefix("src/").removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        tree = parse_module(path, files[path], None)
        for node in tree.body if tree else ():
            if isinstance(node, ast.ClassDef) and _is_crew_or_flow(node, kind):
                names.append((path, f"{module}:{node.name}"))
    return names


def _is_crew_or_flow(node: ast.ClassDef, kind: str) -> bool:
    expressions = node.decorator_list if kind == "crew" else node.bases
    return any(_last_name(mark) == ("CrewBase" if kind == "crew" else "Flow") for mark in expressions)


def _last_name(node: ast.expr) -> str:
    if isinstance(node, ast.Subscript):
        node = node.value
    if isinstance(node, ast.Call):
        node = node.func
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""
