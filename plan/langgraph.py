"""langgraph.json, the configuration that LangGraph's own tools write. Called by plan.configuration.

It is not our format: keys we have no use for are left alone.
"""

import json
import posixpath
from typing import Any

from plan.configuration import Configuration
from plan.errors import CONFIG_INVALID, UNSUPPORTED_FRAMEWORK, PlanError, listed
from plan.source import Files, text_of

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
    local = tuple(item for item in needed if item.startswith((".", "/")))
    return Configuration(
        origin=f"{_FILE}: graphs.{chosen}",
        framework="langgraph",
        entrypoint=_entrypoint(chosen, target),
        python=python,
        requires=tuple(item for item in needed if item not in local),
        directories=tuple(_relative(item) for item in local),
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


def _entrypoint(name: str, target: object) -> str:
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
    path = path.removeprefix("src/").removesuffix("/__init__")
    return f"{path.replace('/', '.')}:{thing}"


def _relative(place: str) -> str:
    path = posixpath.normpath(place)
    if path.startswith(("/", "..")):
        raise _wrong(f"{place!r} leaves the source", "Name a place below the file.")
    return "" if path == "." else path


def _wrong(problem: str, hint: str) -> PlanError:
    return PlanError(CONFIG_INVALID, f"{_FILE}: {problem}", hint)
