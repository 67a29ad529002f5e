"""Entrypoints that are files: scripts, and CrewAI's declarative crews and flows."""

import ast
import posixpath
import re

from .bindings import parse_module
from .discovery.command_lines import command_lines
from .discovery.import_effects import line_of_run_on_import
from .discovery.module_objects import runnable_objects
from .errors import CONFIG_INVALID, ENTRYPOINT_NOT_FOUND, PlanError, closest_match, join_limited
from .source import Files

SCRIPT_SUFFIX = ".py"
DEFINITION_SUFFIXES = (".json", ".jsonc", ".yaml", ".yml")
PATH_CHARACTERS = "ASCII letters, digits, spaces and _-.,()&+"
"""What the path of an entrypoint consists of, for messages."""

_PATH = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_ .,()&+/-]*")
_FORBIDDEN = re.compile(r"[^A-Za-z0-9_ .,()&+/-]")
_PASSIVE = (
    ast.Import,
    ast.ImportFrom,
    ast.FunctionDef,
    ast.AsyncFunctionDef,
    ast.ClassDef,
    ast.Assign,
    ast.AnnAssign,
    ast.Pass,
)


def is_file_entrypoint(entrypoint: str) -> bool:
    """Return whether the entrypoint names a file instead of `module:object`."""
    return ":" not in entrypoint and entrypoint.endswith((SCRIPT_SUFFIX, *DEFINITION_SUFFIXES))


def check_file_entrypoint(files: Files, entrypoint: str, origin: str, python: str) -> str:
    """Return the path of the file. Raises PlanError(ConfigInvalid, EntrypointNotFound)."""
    path = posixpath.normpath(entrypoint)
    if forbidden := _FORBIDDEN.search(path):
        raise PlanError(
            CONFIG_INVALID,
            f"{origin} is {entrypoint!r}, a path with {forbidden[0]!r}",
            f"Rename it, or deploy its directory: a path has only {PATH_CHARACTERS}.",
        )
    if not _PATH.fullmatch(path):
        raise PlanError(
            CONFIG_INVALID,
            f"{origin} is {entrypoint!r}, which is not a path below the source's directory",
            'Write it relative to the configuration, for example "main.py".',
        )
    if path not in files:
        existing = tuple(sorted(name for name in files if name.endswith(posixpath.splitext(path)[1])))
        suggestion = _accepted(files, closest_match(path, existing), origin, python)
        raise PlanError(
            ENTRYPOINT_NOT_FOUND,
            f"{path} ({origin}) not found; such files: {join_limited(existing) or 'none'}",
            f"Did you mean {suggestion}?" if suggestion else "Correct the path.",
        )
    if path.endswith(SCRIPT_SUFFIX):
        tree = parse_module(path, files[path], python)
        runs = tree is not None and line_of_run_on_import(tree) is not None
        if tree is not None and not runs and all(_is_passive(node) for node in tree.body):
            raise PlanError(
                ENTRYPOINT_NOT_FOUND,
                f"{path} ({origin}) does nothing when it is run: it only defines names",
                _object_hint(tree, path),
            )
    return path


def _object_hint(tree: ast.Module, path: str) -> str:
    """Return how to name the crew, graph, agent or command line of a file that only defines it."""
    module = path.removesuffix(SCRIPT_SUFFIX).removeprefix("src/").replace("/", ".")
    if found := next(runnable_objects(tree), None):
        return f"Name its {found.kind}: {module}:{found.name}."
    if command := next(command_lines(tree), None):
        return f"Name its command line: {module}:{command}."
    return "Name one of them as module:object, or call it in that file."


def _accepted(files: Files, path: str | None, origin: str, python: str) -> str | None:
    """Return `path` if it could be the entrypoint, else None."""
    if path is None:
        return None
    try:
        return check_file_entrypoint(files, path, origin, python)
    except PlanError:
        return None


def _is_passive(node: ast.stmt) -> bool:
    return isinstance(node, _PASSIVE) or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))
