"""Runs a step: signals, console, annotation of a failure, and exit code. Called by both actions."""

import signal
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

from actions.workflow.console import Console, lines
from actions.workflow.errors import ErrorResponse, StepCanceled, StepFailed

EXIT_CANCELED = 130


class SignalHandler:
    """Raises StepCanceled on the first signal.

    GitHub sends SIGINT, SIGTERM 7.5 s later, and kills the process after another 2.5 s. A second signal
    raises nothing: it could interrupt the handling of the first. Python drops an exception that is raised
    inside a destructor, so a timer raises it again every second until `acknowledge`. Windows has no timers:
    there each signal raises it until `acknowledge`.
    """

    def __init__(self) -> None:
        self._received = False
        self._acknowledged = False

    def install(self) -> None:
        """Install the signal handlers."""
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._handle)
        if sys.platform != "win32":
            signal.signal(signal.SIGALRM, self._handle)

    def acknowledge(self) -> None:
        """Stop raising StepCanceled, so cleanup can finish."""
        self._acknowledged = True
        if sys.platform != "win32":
            signal.setitimer(signal.ITIMER_REAL, 0)

    def _handle(self, number: int, _frame: FrameType | None) -> None:
        if self._acknowledged:
            return
        if sys.platform != "win32":
            if self._received and number != signal.SIGALRM:
                return
            self._received = True
            signal.setitimer(signal.ITIMER_REAL, 1.0)
        raise StepCanceled(self.acknowledge)


def run_step(action: Callable[[Console], None]) -> int:
    """Run `action` and return the exit code: 0, 1 with an annotation, 130 if the workflow was canceled."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure: Any = getattr(stream, "reconfigure", None)
        if reconfigure:
            # The default encoding on Windows lacks many characters that crews print.
            reconfigure(encoding="utf-8", errors="replace", newline="\n")
    console = Console()
    SignalHandler().install()
    with console.commands_stopped():
        try:
            action(console)
        except StepFailed as failed:
            _annotate(console, failed)
            return 1
        except ErrorResponse as response:
            _annotate(console, StepFailed(f"{response.message} ({response.status} {response.code})"))
            return 1
        except StepCanceled as canceled:
            canceled.acknowledge()
            console.log("canceled")
            return EXIT_CANCELED
    return 0


def _annotate(console: Console, failed: StepFailed) -> None:
    message = "\n".join(lines(failed.message))
    console.command("error", message, file=failed.file, line=failed.line, title=failed.title)
