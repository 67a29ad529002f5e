"""A step from its start to its exit code: signals, the console, and how a failure is told.

Called by the two programs with what they do.
"""

import signal
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

from actions.workflow.console import Console, lines
from actions.workflow.errors import Failed, Refusal, Stopped

CANCELED = 130


class _Stop:
    """The first signal stops the step; GitHub sends another one soon, while what the first began goes on."""

    def __init__(self) -> None:
        self._came = False

    def __call__(self, _number: int, _frame: FrameType | None) -> None:
        if not self._came:
            self._came = True
            raise Stopped


def perform(act: Callable[[Console], None]) -> int:
    """Runs `act` and gives the exit code: 0, 1 with an annotation, 130 where the workflow was canceled."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure: Any = getattr(stream, "reconfigure", None)
        if reconfigure:
            # Windows' own encoding has no letters for much of what a crew prints.
            reconfigure(encoding="utf-8", errors="replace", newline="\n")
    console = Console()
    stop = _Stop()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, stop)
    with console.opened():
        try:
            act(console)
        except Failed as failed:
            _annotate(console, failed)
            return 1
        except Refusal as refusal:
            _annotate(console, Failed(f"{refusal.message} ({refusal.status} {refusal.code})"))
            return 1
        except Stopped:
            console.say("canceled")
            return CANCELED
    return 0


def _annotate(console: Console, failed: Failed) -> None:
    message = "\n".join(lines(failed.message))
    console.command("error", message, file=failed.file, line=failed.line, title=failed.title)
