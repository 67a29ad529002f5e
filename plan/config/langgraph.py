"""langgraph.json, written by LangGraph's tools. Called by plan.config.configuration."""

import json
import posixpath
from typing import Any

from packaging.utils import canonicalize_name

from ..entrypoint import is_module_name
from ..errors import CONFIG_INVALID, UNSUPPORTED_FRAMEWORK, PlanError, join_limited
from ..packages.own_project import is_project
from ..packages.system_packages import instruction_problem
from ..source import Files, text_of
from .configuration import Configuration, NamedEntrypoint, checked_variables
from .framework import ONLY_PYTHON_HINT
from .langgraph_keys import read_keys
from .toml_tables import read_toml

_FILE = "langgraph.json"


def read_langgraph(files: Files, crew: str | None) -> Configuration:
    """Return the configuration; the entrypoint is the graph `crew` (None: the first in Python).

    Raises PlanError(ConfigInvalid, UnsupportedFramework).
    """
    values = _read_json(files)
    graphs = values.get("graphs")
    if not isinstance(graphs, dict) or not graphs:
        raise _error("graphs must be a non-empty object", 'For example: {"agent": "./agent.py:graph"}.')
    if crew is not None and crew not in graphs:
        raise _error(
            f"graphs has no {crew!r}; it has {join_limited(tuple(graphs))}",
            "Set spec.source.git.crew of the Project to one of those, or deploy with --crew NAME.",
        )
    python = values.get("python_version")
    if python is not None and not isinstance(python, str):
        raise _error("python_version must be a string", 'For example: "python_version": "3.11".')
    dependencies = values.get("dependencies", [])
    if not isinstance(dependencies, list) or not all(isinstance(item, str) and item for item in dependencies):
        raise _error("dependencies must be a list of strings", 'For example: "dependencies": ["."].')
    # Windows writes paths with backslashes.
    dependencies = [item.replace("\\", "/") for item in dependencies]
    local = tuple(_directory(item) for item in dependencies if item.startswith((".", "/")))
    local += _uv_package(files, values.get("source"))
    projects = [path for path in local if path and is_project(files, path)]
    named, notes = _named_graphs(graphs, crew, projects)
    return Configuration(
        origin=named[0].origin,
        framework="langgraph",
        entrypoint=named[0].entrypoint,
        python=python,
        env_required=_required_variables(values.get("env")),
        requires=tuple(item for item in dependencies if not item.startswith(".")),
        directories=local,
        python_origin=f"{_FILE}: python_version",
        python_is_preference=True,
        lock_is_optional=True,  # LangGraph's tools install what is declared, and read no lock
        name=named[0].name,
        named=named[1:],
        notes=(*read_keys(_FILE, values), *notes),
        dockerfile_lines=_dockerfile_lines(values.get("dockerfile_lines") or []),
    )


def _named_graphs(
    graphs: dict[str, Any], crew: str | None, projects: list[str]
) -> tuple[tuple[NamedEntrypoint, ...], tuple[str, ...]]:
    """Return the graphs, the chosen one first, and notes on those left out.

    Raises PlanError where the chosen graph, or each of them, is invalid.
    """
    named: list[NamedEntrypoint] = []
    errors: list[PlanError] = []
    for name in sorted(graphs, key=lambda name: name != crew):
        target = graphs[name].get("path") if isinstance(graphs[name], dict) else graphs[name]
        try:
            entrypoint = _entrypoint(name, target, projects)
        except PlanError as error:
            if name == crew:
                raise
            errors.append(error)
            continue
        named.append(NamedEntrypoint(name, entrypoint, f"{_FILE}: graphs.{name}"))
    if not named:
        raise errors[0]
    return tuple(named), tuple(f"a graph is left out: {error.message}" for error in errors)


def _read_json(files: Files) -> dict[str, Any]:
    try:
        values = json.loads(text_of(files, _FILE))
    except json.JSONDecodeError as error:
        raise PlanError(
            CONFIG_INVALID,
            f"{_FILE} line {error.lineno}: not valid JSON: {error.msg}",
            f"Correct {_FILE} at that line.",
        ) from None
    except RecursionError:
        raise _error("the JSON is nested too deeply", "Reduce the nesting.") from None
    except ValueError:
        raise _error("an integer has more than 4,300 digits", "Write it as a string.") from None
    if not isinstance(values, dict):
        raise _error("the file must contain a JSON object", 'It needs at least "graphs".')
    return values


def _required_variables(env: object) -> tuple[str, ...]:
    """Return the variables that the file names; the project sets their values and those of a .env file."""
    if env is None or isinstance(env, str):
        return ()
    if not isinstance(env, dict | list) or not all(isinstance(name, str) for name in env):
        raise _error("env must be an object, a list of names, or the name of a file", 'For example: ".env".')
    return checked_variables(tuple(env), lambda problem, hint: _error(f"env {problem}", hint))


def _entrypoint(name: str, target: object, projects: list[str]) -> str:
    example = 'For example: "./agent/graph.py:graph".'
    if not isinstance(target, str) or ":" not in target:
        raise _error(f"graphs.{name} must be a string path:object", example)
    path_text, _, object_name = target.replace("\\", "/").rpartition(":")
    if path_text.endswith((".js", ".ts", ".mjs", ".mts", ".cjs", ".tsx")):
        raise PlanError(
            UNSUPPORTED_FRAMEWORK,
            f"{_FILE}: graphs.{name} is {path_text}, which is not Python",
            ONLY_PYTHON_HINT,
        )
    if not path_text.endswith(".py"):
        if "/" in path_text or not path_text:
            raise _error(f"graphs.{name} must name a Python file, not {path_text!r}", example)
        return f"{path_text}:{object_name}"
    path = _relative(path_text).removesuffix(".py")
    # An installed project is imported by its package names.
    for project in sorted(projects, reverse=True):
        if path.startswith(f"{project}/"):
            path = path.removeprefix(f"{project}/")
            break
    path = path.removeprefix("src/").removesuffix("/__init__")
    if not all(is_module_name(part) for part in path.split("/")):
        raise _error(
            f"graphs.{name} is in {path_text}, which cannot be imported",
            "Use letters, digits, _ and - in the names of that file and its directories.",
        )
    return f"{path.replace('/', '.')}:{object_name}"


def _directory(item: str) -> str:
    """Return a directory of "dependencies"; it may be above this file, inside the repository."""
    path = posixpath.normpath(item)
    if path.startswith("/"):
        raise _error(f"{item!r} leaves the source", "Use a path relative to this file.")
    return "" if path == "." else path


def _dockerfile_lines(lines: object) -> tuple[str, ...]:
    if not isinstance(lines, list) or not all(isinstance(line, str) for line in lines):
        raise _error("dockerfile_lines must be a list of strings", 'For example: ["RUN apt-get update"].')
    if problem := instruction_problem(lines):
        raise _error(
            f"dockerfile_lines {problem}",
            "Remove that line; the source is in /app when the crew runs, not while its image is built.",
        )
    return tuple(lines)


def _uv_package(files: Files, source: object) -> tuple[str, ...]:
    """Return the directory of the workspace member that `source` names; its root is found without it."""
    if not source:
        return ()
    if not isinstance(source, dict) or source.get("kind") != "uv":
        raise _error(
            "source is not supported", 'Supported is {"kind": "uv", "root": ".", "package": "NAME"}.'
        )
    package = source.get("package")
    if package is None:
        return ()
    paths = [path for path in files if posixpath.basename(path) == "pyproject.toml"]
    for path in sorted(paths, key=lambda path: (path.count("/"), path)):
        project = read_toml(files, path).table("project")
        name = project.values.get("name") if project else None
        if isinstance(name, str) and canonicalize_name(name) == canonicalize_name(str(package)):
            return (posixpath.dirname(path),)
    raise _error(f"source.package is {package!r}, which no pyproject.toml of the source names", "Correct it.")


def _relative(file: str) -> str:
    path = posixpath.normpath(file)
    if path.startswith(("/", "..")):
        raise _error(f"{file!r} leaves the source", "Use a path below the file's directory.")
    return path


def _error(problem: str, hint: str) -> PlanError:
    return PlanError(CONFIG_INVALID, f"{_FILE}: {problem}", hint)
