"""Python's logging → `log` events with their own level. Called by `crew` before the entrypoint is called.

A handler that would write to the process's standard output or error sends its formatted line as an event
instead, with the record's level. So a crew's own configuration of logging holds and no line comes twice.
"""

from __future__ import annotations

import logging
import sys
from typing import Any

from . import channel
from .events import line

_write = logging.StreamHandler.emit
_standard: list[object] = []


def build() -> None:
    """Takes over the standard streams' handlers, those made later too."""
    _standard[:] = [sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__]
    logging.StreamHandler.emit = _emit  # type: ignore[method-assign, assignment]


def level(number: int) -> str:
    """The event's level of a record's number. Pure."""
    for least, name in ((50, "critical"), (40, "error"), (30, "warning"), (20, "info")):
        if number >= least:
            return name
    return "debug"


def _emit(self: logging.StreamHandler[Any], record: logging.LogRecord) -> None:
    if not channel.is_open() or not any(self.stream is one for one in _standard):
        _write(self, record)
        return
    try:
        channel.write(line("log", {"message": self.format(record), "level": level(record.levelno)}))
    except RecursionError:
        raise
    except Exception:  # as logging does: a line that cannot be formatted is told, not raised
        self.handleError(record)
