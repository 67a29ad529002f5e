"""Candidates for the entrypoint in a source tree, the most probable first. Called by .discover."""

import ast
import posixpath
import re
from collections.abc import Iterator
from dataclasses import dataclass

from ..bindings import parse_module
from ..errors import PlanError
from ..packages.own_project import is_project
from ..source import Files
from .import_effects import is_script, line_of_run_on_import
from .module_objects import CREW, FLOW, GRAPH, runnable_objects

_MAX_FILES = 400
_SKIPPED_DIRECTORIES = frozenset({"tests", "test", "docs", "site-packages", ".venv", "venv", "node_modules"})
_HINTS = (b"Crew", b"Flow", b"compile", b"create_")
_DIRECTORIES = r"(src/)?([^/]+/)?"
# The places that the frameworks' tools and examples use. A flow contains crews, so it comes first.
_USUAL_PATHS = (
    (FLOW, re.compile(rf"{_DIRECTORIES}(main|flow)\.py")),
    (CREW, re.compile(rf"{_DIRECTORIES}(crew|main)\.py")),
    (GRAPH, re.compile(rf"{_DIRECTORIES}([^/]+/)?(graph|agent|app|main|workflow)\.py")),
)
ALL_KINDS = (FLOW, CREW, GRAPH)
# Files of declarative crews and flows, with what such a file contains.
_DEFINITIONS = (
    (FLOW, re.compile(rf"{_DIRECTORIES}flow\.ya?ml"), b"crewai.flow/"),
    (CREW, re.compile(rf"{_DIRECTORIES}crew\.jsonc?"), b'"agents"'),
)
_SCRIPT = re.compile(rf"{_DIRECTORIES}(main|run|app)\.py")
# Frameworks whose own command runs the file.
_SERVERS = frozenset({"streamlit", "chainlit"})


@dataclass(frozen=True)
class EntrypointCandidate:
    """An object of the file `path` that a run could call; a lower `rank` is more probable."""

    rank: int
    path: str
    entrypoint: str


@dataclass(frozen=True)
class SourceScan:
    """`candidates` by rank; `scripts` do their work when they are run, the most usual first."""

    candidates: tuple[EntrypointCandidate, ...]
    scripts: tuple[str, ...]


def scan_source(files: Files, kinds: tuple[str, ...] = ALL_KINDS) -> SourceScan:
    """Return the candidates of these kinds. Reads at most 400 modules, the least deep first."""
    candidates, scripts = [*_definitions(files, kinds)], []
    for path, tree in _modules(files):
        if is_script(tree) and not _needs_server(tree):
            scripts.append(path)
        if line_of_run_on_import(tree) is not None:
            continue  # imported, it would run before the run calls it
        for found in runnable_objects(tree):
            if found.kind in kinds and (module := _module_name(files, path)):
                candidates.append(
                    EntrypointCandidate(_rank(path, found.kind), path, f"{module}:{found.name}")
                )
    candidates.sort(key=lambda candidate: candidate.rank)
    scripts.sort(key=_script_rank)
    return SourceScan(tuple(candidates), tuple(scripts))


def _definitions(files: Files, kinds: tuple[str, ...]) -> Iterator[EntrypointCandidate]:
    for kind, pattern, content in _DEFINITIONS:
        if kind in kinds:
            for path in sorted(path for path in files if pattern.fullmatch(path)):
                if content in files[path]:
                    yield EntrypointCandidate(ALL_KINDS.index(kind), path, path)


def _modules(files: Files) -> Iterator[tuple[str, ast.Module]]:
    paths = [path for path in files if path.endswith(".py") and not _SKIPPED_DIRECTORIES & {*path.split("/")}]
    paths.sort(key=lambda path: (path.count("/"), path))
    for path in paths[:_MAX_FILES]:
        data = files[path]
        if not any(hint in data for hint in _HINTS) and not _SCRIPT.fullmatch(path):
            continue
        try:
            tree = parse_module(path, data, None)
        except PlanError:
            continue  # reported where the module is the entrypoint
        if tree is not None:
            yield path, tree


def _needs_server(tree: ast.Module) -> bool:
    imported = {alias.name for node in tree.body if isinstance(node, ast.Import) for alias in node.names}
    return not _SERVERS.isdisjoint(imported)


def _script_rank(path: str) -> tuple[bool, bool, int]:
    return _SCRIPT.fullmatch(path) is None, not path.endswith("main.py"), path.count("/")


def _rank(path: str, kind: str) -> int:
    for rank, (usual_kind, pattern) in enumerate(_USUAL_PATHS):
        if kind == usual_kind and pattern.fullmatch(path):
            return rank
    return len(_USUAL_PATHS) + ALL_KINDS.index(kind)


def _module_name(files: Files, path: str) -> str | None:
    """Return the module's name from /app, /app/src or the installed project; None if it has none."""
    directory = posixpath.dirname(path)
    while directory and not is_project(files, directory):
        directory = posixpath.dirname(directory)
    inner = path.removeprefix(f"{directory}/") if directory else path
    inner = inner.removeprefix("src/").removesuffix(".py").removesuffix("/__init__")
    parts = inner.split("/")
    return ".".join(parts) if all(part.isidentifier() for part in parts) else None
