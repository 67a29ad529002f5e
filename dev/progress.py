"""Progress output: the current step and its elapsed time.

Used by every step of `up`, `deploy` and `down`. Writes to standard error. A terminal shows one line, of the
step that began last, rewritten every half second; other outputs (logs, pipes) get a plain line at the start
of a long step, every ten seconds, and at its end.
"""

import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TextIO

_TERMINAL_SECONDS = 0.5
_PLAIN_SECONDS = 10.0


def elapsed(seconds: float) -> str:
    """Return a duration for people: `0.3s`, `42s`, `5m07s`."""
    if seconds < 10:
        return f"{seconds:.1f}s"
    if seconds < 60:
        return f"{seconds:.0f}s"
    minutes, remainder = divmod(int(seconds), 60)
    return f"{minutes}m{remainder:02d}s"


class Step:
    """One step. `detail` may be set at any time; `quiet` omits the final line.

    `stopped` is set when another step failed: a command that the step waits for is to be killed.
    """

    def __init__(self, title: str, started: float, stopped: threading.Event) -> None:
        self.title = title
        self.started = started
        self.stopped = stopped
        self.detail = ""
        self.quiet = False

    def line(self, now: float) -> str:
        """Return the step as one line of text at the time `now`."""
        text = f"{elapsed(now - self.started):>6}  {self.title}"
        return f"{text}: {self.detail}" if self.detail else text


class StepProgress:
    """Writes steps to one stream."""

    def __init__(self, stream: TextIO | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self._stream = stream or sys.stderr
        self._clock = clock
        self._terminal = self._stream.isatty()
        self._lock = threading.Lock()
        self._active: list[Step] = []
        self._stopped = threading.Event()

    def stop(self) -> None:
        """Stop the commands of all steps."""
        self._stopped.set()

    def print_line(self, text: str) -> None:
        """Print a separate line."""
        with self._lock:
            self._clear()
            print(text, file=self._stream, flush=True)

    @contextmanager
    def step(self, title: str) -> Iterator[Step]:
        """Show `title` with the elapsed time until the block ends."""
        step = Step(title, self._clock(), self._stopped)
        self._active.append(step)
        done = threading.Event()
        ticker = threading.Thread(target=self._tick, args=(step, done), daemon=True)
        ticker.start()
        try:
            yield step
        except BaseException:
            self.print_line(f"{step.line(self._clock())}  FAILED")
            raise
        finally:
            self._active.remove(step)
            done.set()
            ticker.join()
        if not step.quiet:
            self.print_line(step.line(self._clock()))
        elif self._terminal:
            with self._lock:
                self._clear()

    def _tick(self, step: Step, done: threading.Event) -> None:
        while not done.wait(_TERMINAL_SECONDS if self._terminal else _PLAIN_SECONDS):
            if not self._terminal:
                self.print_line(f"{step.line(self._clock())} …")
            elif step in self._active[-1:]:
                with self._lock:
                    width = shutil.get_terminal_size().columns - 1
                    self._clear()
                    print(step.line(self._clock())[:width], end="", file=self._stream, flush=True)

    def _clear(self) -> None:
        if self._terminal:
            print("\r\033[K", end="", file=self._stream)
