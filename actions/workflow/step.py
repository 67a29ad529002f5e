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


class Signals:
    """The first signal raises Stopped; later ones find that it was heard, and do nothing.

    GitHub sends SIGINT, 7.5 s later SIGTERM, and ends the process after 2.5 s more.
    An exception that is raised within a destructor is lost, so it comes again every
    second until `heard`, where there are timers (everywhere but on Windows).
    """

    def __init__(self) -> None:
        self._heard = False

    def listen(self) -> None:
        """From now on."""
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._came)
        if sys.platform != "win32":
            signal.signal(signal.SIGALRM, self._came)

    def heard(self) -> None:
        """Lets what is done about the signal be done in peace."""
        self._heard = True
        if sys.platform != "win32":
            signal.setitimer(signal.ITIMER_REAL, 0)

    def _came(self, _number: int, _frame: FrameType | None) -> None:
        if self._heard:
            return
        if sys.platform != "win32":
            signal.setitimer(signal.ITIMER_REAL, 1.0)
        raise Stopped(self.heard)


def perform(act: Callable[[Console], None]) -> int:
    """Runs `act` and gives the exit code: 0, 1 with an annotation, 130 where the workflow was canceled."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure: Any = getattr(stream, "reconfigure", None)
        if reconfigure:
            # Windows' own encoding has no letters for much of what a crew prints.
            reconfigure(encoding="utf-8", errors="replace", newline="\n")
    console = Console()
    Signals().listen()
    with console.opened():
        try:
            act(console)
        except Failed as failed:
            _annotate(console, failed)
            return 1
        except Refusal as refusal:
            _annotate(console, Failed(f"{refusal.message} ({refusal.status} {refusal.code})"))
            return 1
        except Stopped as stopped:
            stopped.heard()
            console.say("canceled")
            return CANCELED
    return 0


def _annotate(console: Console, failed: Failed) -> None:
    message = "\n".join(lines(failed.message))
    console.command("error", message, file=failed.file, line=failed.line, title=failed.title)
