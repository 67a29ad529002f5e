"""Signals as values: held from the start, fetched by the main thread only, so that no handler ever runs."""

from __future__ import annotations

import os
import signal

STOP = frozenset({signal.SIGTERM, signal.SIGINT})
CHILD = signal.SIGCHLD
POKE = signal.SIGUSR1
_HELD = STOP | {CHILD, POKE}


def hold() -> None:
    """Blocks our signals in this thread and all made later. A blocked signal reaches even process 1."""
    signal.pthread_sigmask(signal.SIG_BLOCK, _HELD)


def wait(seconds: float) -> int | None:
    """The next held signal, or None after `seconds`."""
    info = signal.sigtimedwait(_HELD, max(0.0, seconds))
    return None if info is None else info.si_signo


def stop_within(seconds: float) -> bool:
    """Pauses for `seconds`; True at once if the pod is asked to stop."""
    return signal.sigtimedwait(STOP, max(0.0, seconds)) is not None


def poke() -> None:
    """Wakes the main thread from `wait`. For the other threads."""
    os.kill(os.getpid(), POKE)
