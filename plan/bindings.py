"""Which names a module binds at its top level, told from its text alone: nothing is executed.

Used by plan.entrypoint and plan.config.crewai.
"""

import ast
import sys
import warnings
from dataclasses import dataclass

from .errors import ENTRYPOINT_NOT_FOUND, PlanError

_PARSED_BYTES = 2 << 20
_DYNAMIC_CALLS = frozenset({"globals", "vars", "locals", "exec", "setattr", "__import__"})


@dataclass(frozen=True)
class Bindings:
    """`names` in order of appearance; `open` where the text cannot tell all of them."""

    names: tuple[str, ...]
    open: bool


def parse_module(path: str, data: bytes, python: str | None) -> ast.Module | None:
    """The syntax tree of a module, or None where this interpreter cannot judge it.

    That is a file too large to be worth it, or one that does not parse here while
    `python` (the crew's version) is newer than this interpreter. Raises
    PlanError(EntrypointNotFound) with file and line for a syntax error.
    """
    if len(data) > _PARSED_BYTES:
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a crew's doubtful escapes are no concern of the build's log
            return ast.parse(data, filename=path)
    except (RecursionError, MemoryError):
        return None
    except (SyntaxError, ValueError) as error:
        if python is not None and _version(python) > sys.version_info[:2]:
            return None
        line = getattr(error, "lineno", None)
        where = path if line is None else f"{path} line {line}"
        what = error.msg if isinstance(error, SyntaxError) else str(error)
        raise PlanError(
            ENTRYPOINT_NOT_FOUND, f"{where}: syntax error: {what}", f"Try: python3 -m py_compile {path}"
        ) from None


def bindings_of(tree: ast.Module) -> Bindings:
    """The names that are bound once the module has been imported, on any of its branches.

    Any depth is walked, as hundreds of elif in generated code are nested ones.
    """
    names: dict[str, None] = {}
    open_ended = False
    waiting: list[ast.AST] = [*reversed(tree.body)]
    while waiting:
        node = waiting.pop()
        bound, inner = _bound(node)
        names |= dict.fromkeys(bound)
        open_ended = open_ended or _is_open(node)
        waiting += reversed(inner)
    return Bindings(tuple(names), open_ended)


def _bound(node: ast.AST) -> tuple[list[str], list[ast.AST]]:
    """The names that the node itself binds, and what inside of it may bind more."""
    match node:
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            return [node.name], []
        case ast.Import() | ast.ImportFrom():
            names = [alias.asname or alias.name.partition(".")[0] for alias in node.names]
            return [name for name in names if name != "*"], []
        case ast.AnnAssign(value=None) | ast.Lambda():  # an annotation alone binds nothing
            return [], []
        case ast.comprehension():
            return [], [node.iter, *node.ifs]  # its own target stays inside
        case ast.Name():
            return ([node.id] if isinstance(node.ctx, ast.Store) else []), []
        case ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)) | ast.MatchMapping(rest=str(name)):
            return [name], [*ast.iter_child_nodes(node)]
    return [], [*ast.iter_child_nodes(node)]


def _is_open(node: ast.AST) -> bool:
    """Whether what the node binds cannot be told from the text."""
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
