"""The change that the current request makes, until it is recorded.

A context variable carries it, so the transaction that stores the change records it too, and no function in
between passes it on. Set by `api.routing.endpoint`, read by `api.store.index.audit.audit_log`.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import datetime


@dataclass
class Change:
    """Who asks for which change, from where. `project` and `target` are set as soon as they are known.

    A closed change is no longer recorded: its request has ended.
    """

    time: datetime
    actor: str
    remote: str
    method: str
    path: str
    request_id: str
    project: str | None = None
    target: str | None = None
    recorded: bool = False
    closed: bool = False

    def mark_recorded(self) -> None:
        """Note that a committed transaction has the record."""
        self.recorded = True


_current: ContextVar[Change | None] = ContextVar("change", default=None)


@contextmanager
def making(change: Change) -> Iterator[None]:
    """Make `change` the current one within the block."""
    token = _current.set(change)
    try:
        yield
    finally:
        change.closed = True
        _current.reset(token)


def unrecorded() -> Change | None:
    """Return the current change if it is not recorded yet."""
    change = _current.get()
    return None if change is None or change.recorded or change.closed else change


def describe(project: str | None = None, target: str | None = None) -> None:
    """Name the project of the current change, and the object that it creates or changes."""
    change = _current.get()
    if change is not None:
        change.project = project or change.project
        change.target = target or change.target
