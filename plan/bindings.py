"""Syntax trees of modules, and the names that a module binds at its top level; executes nothing.

Called by the modules of plan that find the entrypoint and its input.
"""

import ast
import posixpath
import re
import sys
import warnings
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

from .errors import ENTRYPOINT_NOT_FOUND, PlanError
from .source import Files

_MAX_PARSED_BYTES = 2 << 20
_DYNAMIC_CALLS = frozenset({"globals", "vars", "locals", "exec", "setattr", "__import__"})
_HEAD_END = re.compile(r":\s*(#.*)?$")


@dataclass(frozen=True)
class Bindings:
    """`names` in order of appearance; `incomplete` where the module may bind more at run time."""

    names: tuple[str, ...]
    incomplete: bool


@lru_cache(maxsize=1)  # a plan asks several times for the module of its entrypoint
def parse_module(path: str, data: bytes, python: str | None) -> ast.Module | None:
    """Return the syntax tree of a module, or None where this interpreter cannot parse it.

    That is a file above the size limit, or a syntax error while `python` (the crew's version) is newer than
    this interpreter. Raises PlanError(EntrypointNotFound) with file and line for other syntax errors.
    """
    if len(data) > _MAX_PARSED_BYTES:
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # invalid escapes in a crew's code do not belong in the build log
            return ast.parse(data, filename=path)
    except (RecursionError, MemoryError):
        return None
    except (SyntaxError, ValueError) as error:
        if python is not None and _version(python) > sys.version_info[:2]:
            return None
        line = getattr(error, "lineno", None)
        location = path if line is None else f"{path} line {line}"
        problem = error.msg if isinstance(error, SyntaxError) else str(error)
        raise PlanError(
            ENTRYPOINT_NOT_FOUND, f"{location}: syntax error: {problem}", f"Try: python3 -m py_compile {path}"
        ) from None


def readable_module(files: Files, path: str, python: str | None) -> ast.Module | None:
    """Return the syntax tree of a module, or None for any that cannot be parsed."""
    try:
        return parse_module(path, files[path], python)
    except PlanError:
        return None  # reported where the module is the entrypoint


def module_at(files: Files, stem: str) -> str | None:
    """Return the file of the package or module whose path without a suffix is `stem`, or None."""
    return next((path for path in (f"{stem}/__init__.py", f"{stem}.py") if path in files), None)


def import_start(node: ast.ImportFrom, path: str) -> str | None:
    """Return the directory from which the module at `path` imports relatively; None if it does not."""
    if not node.level:
        return None
    start = posixpath.dirname(path)
    for _ in range(node.level - 1):
        start = posixpath.dirname(start)
    return start


def parse_outline(data: bytes) -> ast.Module:
    """Return the top-level statements that this interpreter can parse, for a module of a newer Python.

    Of a class or function whose body it cannot parse, returns the head alone.
    """
    starts: list[int] = []
    before = ""
    lines = data[:_MAX_PARSED_BYTES].decode(errors="replace").splitlines()
    for number, line in enumerate(lines):
        if line[:1] not in ("", " ", "\t", "#", ")", "]", "}"):
            if not before.startswith("@"):
                starts.append(number)
            before = line
    body: list[ast.stmt] = []
    for start, end in pairwise([*starts, len(lines)]):
        body += _statements(lines[start:end])
    return ast.Module(body, [])


def _statements(lines: list[str]) -> list[ast.stmt]:
    head = next((number for number, line in enumerate(lines, 1) if _HEAD_END.search(line)), 0)
    for text in ("\n".join(lines), "\n".join([*lines[:head], " ..."])):
        try:
            return ast.parse(text).body
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            continue
    return []


def bindings_of(tree: ast.Module) -> Bindings:
    """Return the names that any branch of the module may bind on import.

    Walks iteratively, because hundreds of elif branches in generated code are nested nodes.
    """
    names: dict[str, None] = {}
    incomplete = False
    pending: list[ast.AST] = [*reversed(tree.body)]
    while pending:
        node = pending.pop()
        bound, inner = _binds(node)
        names |= dict.fromkeys(bound)
        incomplete = incomplete or _is_dynamic(node)
        pending += reversed(inner)
    return Bindings(tuple(names), incomplete)


def last_name(node: ast.expr | None) -> str:
    """Return the last name of an expression: `Flow` of `flow.Flow[State]`, of `Flow(...)` and of `Flow`."""
    if isinstance(node, ast.Subscript):
        node = node.value
    if isinstance(node, ast.Call):
        node = node.func
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def _binds(node: ast.AST) -> tuple[list[str], list[ast.AST]]:
    """Return the names that the node binds, and its child nodes that may bind more."""
    match node:
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            return [node.name], []
        case ast.Import() | ast.ImportFrom():
            names = [alias.asname or alias.name.partition(".")[0] for alias in node.names]
            return [name for name in names if name != "*"], []
        case ast.AnnAssign(value=None) | ast.Lambda():  # an annotation alone binds nothing
            return [], []
        case ast.comprehension():
            return [], [node.iter, *node.ifs]  # its target is local
        case ast.Name():
            return ([node.id] if isinstance(node.ctx, ast.Store) else []), []
        case ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)) | ast.MatchMapping(rest=str(name)):
            return [name], [*ast.iter_child_nodes(node)]
    return [], [*ast.iter_child_nodes(node)]


def _is_dynamic(node: ast.AST) -> bool:
    """Return whether the node may bind names that the text does not show."""
    match node:
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            return node.name == "__getattr__"
        case ast.ImportFrom():
            return any(alias.name == "*" for alias in node.names)
        case ast.Call(func=ast.Name(id=name)):
            return name in _DYNAMIC_CALLS
    return False


def _version(python: str) -> tuple[int, ...]:
    return tuple(int(part) for part in python.split(".")[:2] if part.isdigit())
