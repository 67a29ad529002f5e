"""Counts the SQL statements that a block of code executes, in any engine."""

import contextlib
from collections.abc import Iterator
from typing import Any

from sqlalchemy import event
from sqlalchemy.engine import Engine


@contextlib.contextmanager
def counted() -> Iterator[list[str]]:
    """Yield a list that receives each statement while the context is open."""
    statements: list[str] = []

    def record(_connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
        statements.append(statement)

    event.listen(Engine, "before_cursor_execute", record)
    try:
        yield statements
    finally:
        event.remove(Engine, "before_cursor_execute", record)
