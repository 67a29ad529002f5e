"""What the demonstration prints: steps as they happen, and at the end how long each took."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

_BOLD, _DIM, _OFF = ("\x1b[1m", "\x1b[2m", "\x1b[0m") if sys.stdout.isatty() else ("", "", "")


class Timeline:
    """Steps with their durations, on standard output."""

    def __init__(self) -> None:
        self._begin = time.monotonic()
        self._steps: list[tuple[str, float, float]] = []

    @contextmanager
    def step(self, title: str) -> Iterator[None]:
        """Print a step and measure its time, also if it fails."""
        start = time.monotonic()
        print(f"\n{_BOLD}==> {title}{_OFF}", flush=True)
        try:
            yield
        finally:
            took = time.monotonic() - start
            self._steps.append((title, start - self._begin, took))
            print(f"{_DIM}    {took:.2f} s{_OFF}", flush=True)

    def say(self, text: str) -> None:
        """A line, or several, within a step."""
        for line in text.rstrip("\n").split("\n"):
            print(f"    {line}", flush=True)

    def summary(self) -> None:
        """The table of steps."""
        print(f"\n{_BOLD}Timeline{_OFF}")
        print("     at      took")
        for title, at, took in self._steps:
            print(f"{at:7.2f} s {took:7.2f} s  {title}")
        print(f"{time.monotonic() - self._begin:7.2f} s in all", flush=True)
