"""Sends records of Python's logging as `log` events with their level. Called by `crew` before the entrypoint.

A handler that writes to the process's standard output or error sends its formatted line as an event instead,
with the level of the record. So the crew's own logging configuration applies, and no line appears twice.
"""

from __future__ import annotations

import logging
import sys
from typing import Any

from . import channel
from .events import channel_line

_write = logging.StreamHandler.emit
_standard: list[object] = []


def install() -> None:
    """Redirect the handlers of the standard streams, including later ones."""
    _standard[:] = [sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__]
    logging.StreamHandler.emit = _emit  # type: ignore[method-assign, assignment]


def level(number: int) -> str:
    """Return the level name of a record's level number. Pure."""
    for minimum, name in ((50, "critical"), (40, "error"), (30, "warning"), (20, "info")):
        if number >= minimum:
            return name
    return "debug"


def _emit(self: logging.StreamHandler[Any], record: logging.LogRecord) -> None:
    if not channel.is_open() or not any(self.stream is stream for stream in _standard):
        _write(self, record)
        return
    try:
        channel.write(channel_line("log", {"message": self.format(record), "level": level(record.levelno)}))
    except RecursionError:
        raise
    except Exception:  # like logging: report a line that cannot be formatted, do not raise
        self.handleError(record)
