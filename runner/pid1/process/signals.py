"""Signals as values: held from the start, fetched by the main thread only, so that no handler ever runs."""

from __future__ import annotations

import _signal as signal  # type: ignore[import-not-found]  # `signal` less its enumerations, before the grant
import os
import time

STOP = frozenset({signal.SIGTERM, signal.SIGINT})
CHILD = signal.SIGCHLD
POKE = signal.SIGUSR1
_HELD = STOP | {CHILD, POKE}
_told = False


def hold() -> None:
    """Blocks our signals in this thread and all made later. A blocked signal reaches even process 1."""
    signal.pthread_sigmask(signal.SIG_BLOCK, _HELD)


def wait(seconds: float) -> int | None:
    """The next held signal, or None after `seconds` or where it was one that does not count."""
    return _heard(signal.sigtimedwait(_HELD, max(0.0, seconds)))


def stop_within(seconds: float) -> bool:
    """Pauses for `seconds`; True at once if the pod is asked to stop."""
    end = time.monotonic() + seconds
    while True:
        info = signal.sigtimedwait(STOP, max(0.0, end - time.monotonic()))
        if info is None or _heard(info) is not None:
            return info is not None


def poke() -> None:
    """Wakes the main thread from `wait`. For the other threads."""
    os.kill(os.getpid(), POKE)


def _heard(info: signal.struct_siginfo | None) -> int | None:
    """The signal's number, None for a request to stop that comes from a process of the pod itself.

    The kubelet's comes from outside the pod's process namespace, where the sender's number is 0. A crew that
    signals everything it can reach shall not look like a run that was canceled.
    """
    global _told
    if info is None:
        return None
    if info.si_signo in STOP and os.getpid() == 1 and info.si_pid != 0:
        if not _told:
            _told = True
            os.write(2, b"crewyard: a process of the pod asked the runner to stop; only Kubernetes can\n")
        return None
    return int(info.si_signo)
