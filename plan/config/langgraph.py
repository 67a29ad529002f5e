"""langgraph.json, the configuration that LangGraph's own tools write. Called by plan.config.configuration.

It is not our format: keys we have no use for are left alone.
"""

import json
import posixpath
from typing import Any

from ..errors import CONFIG_INVALID, UNSUPPORTED_FRAMEWORK, PlanError, listed
from ..packages.own_project import is_project
from ..source import Files, text_of
from .configuration import Configuration, checked_variables

_FILE = "langgraph.json"


def read_langgraph(files: Files, crew: str | None) -> Configuration:
    """The graph named `crew` (None: the only one). Raises PlanError(ConfigInvalid, UnsupportedFramework)."""
    values = _values(files)
    graphs = values.get("graphs")
    if not isinstance(graphs, dict) or not graphs:
        raise _wrong(
            "graphs must be an object that is not empty", 'For example: {"agent": "./agent.py:graph"}.'
        )
    names = tuple(graphs)
    if crew is None and len(names) > 1:
        raise _wrong(f"graphs has several: {listed(names)}", "Name one of them as the source's crew.")
    chosen = names[0] if crew is None else crew
    if chosen not in graphs:
        raise _wrong(f"graphs has no {chosen!r}; it has {listed(names)}", "Name one as the source's crew.")
    target = graphs[chosen]
    if isinstance(target, dict):
        target = target.get("path")
    python = values.get("python_version")
    if python is not None and not isinstance(python, str):
        raise _wrong("python_version must be a text", 'For example: "python_version": "3.11".')
    needed = values.get("dependencies", [])
    if not isinstance(needed, list) or not all(isinstance(item, str) and item for item in needed):
        raise _wrong("dependencies must be a list of texts", 'For example: "dependencies": ["."].')
    local = tuple(_relative(item) for item in needed if item.startswith((".", "/")))
    return Configuration(
        origin=f"{_FILE}: graphs.{chosen}",
        framework="langgraph",
        entrypoint=_entrypoint(chosen, target, [path for path in local if path and is_project(files, path)]),
        python=python,
        env_required=_required(values.get("env")),
        requires=tuple(item for item in needed if not item.startswith((".", "/"))),
        directories=local,
        python_origin=f"{_FILE}: python_version",
    )


def _values(files: Files) -> dict[str, Any]:
    try:
        values = json.loads(text_of(files, _FILE))
    except json.JSONDecodeError as error:
        raise PlanError(
            CONFIG_INVALID,
            f"{_FILE} line {error.lineno}: not valid JSON: {error.msg}",
            f"Correct {_FILE} at the place named.",
        ) from None
    except RecursionError:
        raise _wrong("nested too deeply", "Make it flat.") from None
    if not isinstance(values, dict):
        raise _wrong("the file must hold a JSON object", 'It needs at least "graphs".')
    return values


def _required(env: object) -> tuple[str, ...]:
    """The variables that the file names; their values, and those of a .env file, are the project's to set."""
    if env is None or isinstance(env, str):
        return ()
    if not isinstance(env, dict | list) or not all(isinstance(name, str) for name in env):
        raise _wrong("env must be an object, a list of names, or the name of a file", 'For example: ".env".')
    return checked_variables(tuple(env), lambda problem, hint: _wrong(f"env {problem}", hint))


def _entrypoint(name: str, target: object, projects: list[str]) -> str:
    example = 'For example: "./agent/graph.py:graph".'
    if not isinstance(target, str) or ":" not in target:
        raise _wrong(f"graphs.{name} must be a text path:object", example)
    place, _, thing = target.rpartition(":")
    if place.endswith((".js", ".ts", ".mjs", ".mts", ".cjs", ".tsx")):
        raise PlanError(
            UNSUPPORTED_FRAMEWORK,
            f"{_FILE}: graphs.{name} is {place}, which is not Python",
            "Only Python crews can be built.",
        )
    if not place.endswith(".py"):
        if "/" in place or not place:
            raise _wrong(f"graphs.{name} must name a Python file, not {place!r}", example)
        return f"{place}:{thing}"
    path = _relative(place).removesuffix(".py")
    # A project that is installed is imported by its packages' names.
    for project in sorted(projects, key=len, reverse=True):
        if path.startswith(f"{project}/"):
            path = path.removeprefix(f"{project}/")
            break
    path = path.removeprefix("src/").removesuffix("/__init__")
    if not all(part.isidentifier() for part in path.split("/")):
        raise _wrong(
            f"graphs.{name} is in {place}, which cannot be imported",
            "Use letters, digits and _ in the names of that file and its directories.",
        )
    return f"{path.replace('/', '.')}:{thing}"


def _relative(place: str) -> str:
    path = posixpath.normpath(place)
    if path.startswith(("/", "..")):
        raise _wrong(f"{place!r} leaves the source", "Name a place below the file.")
    return "" if path == "." else path


def _wrong(problem: str, hint: str) -> PlanError:
    return PlanError(CONFIG_INVALID, f"{_FILE}: {problem}", hint)
