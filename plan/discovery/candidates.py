"""Candidates for the entrypoint in a source tree, the most probable first. Called by .discover."""

import ast
import posixpath
import re
from collections.abc import Iterator
from dataclasses import dataclass

from ..bindings import parse_module, parse_outline
from ..errors import PlanError
from ..packages.own_project import is_project
from ..source import Files
from .frameworks import imported_packages, is_framework
from .import_effects import is_script, line_of_run_on_import, talks_on_import
from .module_objects import (
    AGENT,
    CREW,
    FLOW,
    GRAPH,
    WORKFLOW,
    agent_builders,
    crew_classes,
    graph_builders,
    runnable_objects,
    workflow_classes,
)
from .relative_imports import leaves_root
from .servers import SERVER_HINTS, has_application, uses_server

_MAX_FILES = 400
_SKIPPED_DIRECTORIES = frozenset(
    {"tests", "test", "evals", "benchmarks", "docs", "site-packages", ".venv", "venv", "node_modules"}
)
# Files that test runners collect.
_TEST_FILE = re.compile(r"(.*/)?(test_[^/]*|[^/]*_test|conftest)\.py")
_HINTS = (
    b"Crew",
    b"Flow",
    b"compile",
    b"create_",
    b"Agent(",
    b"Agent[",
    b"GroupChat(",
    b"Swarm(",
    b"Workflow",
)
_SCRIPT_HINTS = (b"__main__", b"print(", b"input(")
_DIRECTORIES = r"(src/)?([^/]+/)?"
# The places that the frameworks' tools and examples use. A flow contains crews, so it comes first.
_USUAL_PATHS = (
    (FLOW, re.compile(rf"{_DIRECTORIES}(main|flow)\.py")),
    (CREW, re.compile(rf"{_DIRECTORIES}(crew|main)\.py")),
    (GRAPH, re.compile(rf"{_DIRECTORIES}([^/]+/)?(graph|agent|app|main|workflow)\.py")),
    (WORKFLOW, re.compile(rf"{_DIRECTORIES}([^/]+/)?(workflow|agent|app|main)\.py")),
    (AGENT, re.compile(rf"{_DIRECTORIES}([^/]+/)?(agent|team|app|main)\.py")),
)
ALL_KINDS = (FLOW, CREW, GRAPH, WORKFLOW, AGENT)
# Files of declarative crews and flows, with what such a file contains.
_DEFINITIONS = (
    (FLOW, re.compile(rf"{_DIRECTORIES}flow\.ya?ml"), b"crewai.flow/"),
    (CREW, re.compile(rf"{_DIRECTORIES}crew\.jsonc?"), b'"agents"'),
)
_SCRIPT = re.compile(rf"{_DIRECTORIES}(main|run|app)\.py")


@dataclass(frozen=True, order=True)
class EntrypointCandidate:
    """An object of the file `path` that a run could call; a lower `rank` is more probable."""

    rank: int
    path: str
    entrypoint: str


@dataclass(frozen=True)
class SourceScan:
    """`candidates` by rank; `scripts` do their work when they are run, the most usual first.

    `usual_scripts` are those of them at the most usual place. `agent_scripts` are in the root or in src and
    import a framework, including those that start a server. `servers` are modules that serve a page or an
    API. `crews` are classes whose method makes a crew, `builders` functions that make a graph,
    `agent_builders` those that make an agent, `workflows` classes of LlamaIndex workflows.
    """

    candidates: tuple[EntrypointCandidate, ...]
    scripts: tuple[str, ...]
    usual_scripts: tuple[str, ...]
    agent_scripts: tuple[str, ...]
    servers: tuple[str, ...]
    crews: tuple[str, ...]
    builders: tuple[str, ...]
    agent_builders: tuple[str, ...]
    workflows: tuple[str, ...]


def scan_source(files: Files, python: str, kinds: tuple[str, ...] = ALL_KINDS) -> SourceScan:
    """Return the candidates of these kinds. Reads at most 400 modules, the least deep first.

    `python` is the crew's version.
    """
    candidates, scripts, agent_scripts = {*_definitions(files, kinds)}, [], []
    servers: list[str] = []
    crews: list[str] = []
    builders: list[str] = []
    makers: list[str] = []
    workflows: list[str] = []
    for path, tree, imported in _modules(files, python):
        serves = uses_server(tree, imported)
        has_framework = any(map(is_framework, imported))
        if is_script(tree) or (has_framework and talks_on_import(tree)):
            if _is_at_top(path) and has_framework:
                agent_scripts.append(path)
            if not serves:
                scripts.append(path)
        if serves and has_application(tree, imported):
            servers.append(path)
        if line_of_run_on_import(tree) is not None:
            continue  # imported, it would run before the run calls it
        module = _module_name(files, path, python)
        if module and CREW in kinds:
            crews += [f"{module}:{name}" for name in crew_classes(tree)]
        if module and GRAPH in kinds:
            builders += [f"{module}:{name}" for name in graph_builders(tree)]
        if module and AGENT in kinds:
            makers += [f"{module}:{name}" for name in agent_builders(tree)]
        if module and WORKFLOW in kinds:
            workflows += [f"{module}:{name}" for name in workflow_classes(tree)]
        for found in runnable_objects(tree):
            if module and found.kind in kinds:
                candidates.add(EntrypointCandidate(_rank(path, found.kind), path, f"{module}:{found.name}"))
    scripts.sort(key=_script_rank)
    usual = [path for path in scripts if _SCRIPT.fullmatch(path)]
    return SourceScan(
        tuple(sorted(candidates)),
        tuple(scripts),
        tuple(path for path in usual if _script_rank(path) == _script_rank(usual[0])),
        tuple(agent_scripts),
        tuple(servers),
        tuple(crews),
        tuple(builders),
        tuple(makers),
        tuple(workflows),
    )


def _definitions(files: Files, kinds: tuple[str, ...]) -> Iterator[EntrypointCandidate]:
    for kind, pattern, content in _DEFINITIONS:
        if kind in kinds:
            for path in sorted(path for path in files if pattern.fullmatch(path)):
                if content in files[path]:
                    yield EntrypointCandidate(ALL_KINDS.index(kind), path, path)


def _modules(files: Files, python: str) -> Iterator[tuple[str, ast.Module, set[str]]]:
    paths = [path for path in files if path.endswith(".py") and not _is_skipped(path)]
    paths.sort(key=lambda path: (path.count("/"), path))
    for path in paths[:_MAX_FILES]:
        data = files[path]
        hinted = any(hint in data for hint in _HINTS) or _SCRIPT.fullmatch(path)
        at_top = _is_at_top(path) and any(hint in data for hint in _SCRIPT_HINTS)
        if not hinted and not at_top and not any(hint in data for hint in SERVER_HINTS):
            continue
        try:
            tree = parse_module(path, data, python)
        except PlanError:
            continue  # reported where the module is the entrypoint
        tree = parse_outline(data) if tree is None else tree
        imported = imported_packages(tree)
        if hinted or (at_top and any(map(is_framework, imported))) or uses_server(tree, imported):
            yield path, tree, imported


def _is_skipped(path: str) -> bool:
    return not _SKIPPED_DIRECTORIES.isdisjoint(path.split("/")) or _TEST_FILE.fullmatch(path) is not None


def _is_at_top(path: str) -> bool:
    return "/" not in path.removeprefix("src/")


def _script_rank(path: str) -> tuple[bool, bool, int]:
    return _SCRIPT.fullmatch(path) is None, not path.endswith("main.py"), path.count("/")


def _rank(path: str, kind: str) -> int:
    for rank, (usual_kind, pattern) in enumerate(_USUAL_PATHS):
        if kind == usual_kind and pattern.fullmatch(path):
            return rank
    return len(_USUAL_PATHS) + ALL_KINDS.index(kind)


def _module_name(files: Files, path: str, python: str) -> str | None:
    """Return the module's name from /app, /app/src or the installed project; None if it has none."""
    directory = posixpath.dirname(path)
    while directory and not is_project(files, directory):
        directory = posixpath.dirname(directory)
    inner = path.removeprefix(f"{directory}/")
    if inner.startswith("src/") and (directory or not leaves_root(files, path, "src", python)):
        inner = inner.removeprefix("src/")
    inner = inner.removesuffix(".py").removesuffix("/__init__")
    parts = inner.split("/")
    return ".".join(parts) if all(part.isidentifier() for part in parts) else None
