"""Which names a module binds at its top level, told from its text alone: nothing is executed.

Used by plan.entrypoint and plan.crewai.
"""

import ast
import sys
import warnings
from collections.abc import Iterable
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
    """The names that are bound once the module has been imported, on any of its branches."""
    collector = _Collector()
    try:
        collector.statements(tree.body)
    except RecursionError:  # generated code, such as hundreds of elif: it may well run, so it is not refused
        collector.open = True
    return Bindings(tuple(collector.names), collector.open)


class _Collector:
    def __init__(self) -> None:
        self.names: dict[str, None] = {}
        self.open = False

    def statements(self, body: Iterable[ast.stmt]) -> None:
        for node in body:
            self._statement(node)

    def _statement(self, node: ast.stmt) -> None:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            self.names[node.name] = None
            self.open = self.open or node.name == "__getattr__"
            return
        if isinstance(node, ast.Import | ast.ImportFrom):
            for alias in node.names:
                if alias.name == "*":
                    self.open = True
                else:
                    self.names[alias.asname or alias.name.partition(".")[0]] = None
            return
        if isinstance(node, ast.AnnAssign) and node.value is None:
            return  # an annotation alone binds nothing
        for child in ast.iter_child_nodes(node):
            self._child(child)

    def _child(self, node: ast.AST) -> None:
        if isinstance(node, ast.stmt):
            self._statement(node)
        elif isinstance(node, ast.expr):
            self._expression(node)
        else:  # handlers of try, cases of match, items of with
            name = getattr(node, "name", None)
            if isinstance(node, ast.MatchAs | ast.MatchStar) and name:
                self.names[name] = None
            for child in ast.iter_child_nodes(node):
                self._child(child)

    def _expression(self, root: ast.expr) -> None:
        waiting: list[ast.AST] = [root]
        while waiting:
            node = waiting.pop(0)
            if isinstance(node, ast.Lambda):
                continue
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                self.names[node.id] = None
            called = node.func if isinstance(node, ast.Call) else None
            if isinstance(called, ast.Name) and called.id in _DYNAMIC_CALLS:
                self.open = True
            if isinstance(node, ast.comprehension):
                waiting += [node.iter, *node.ifs]  # its own target stays inside
            else:
                waiting += ast.iter_child_nodes(node)


def _version(python: str) -> tuple[int, ...]:
    return tuple(int(part) for part in python.split(".")[:2] if part.isdigit())
