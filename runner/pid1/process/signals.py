"""Signals as values: blocked from the start and read only by the main thread, so no handler ever runs."""

from __future__ import annotations

import _signal as signal  # type: ignore[import-not-found]  # `signal` without its enumerations
import os
import time

STOP = frozenset({signal.SIGTERM, signal.SIGINT})
CHILD = signal.SIGCHLD
WAKE = signal.SIGUSR1
_BLOCKED = STOP | {CHILD, WAKE}
_warned = False


def block() -> None:
    """Block our signals in this thread and all later ones. The kernel keeps a blocked signal of process 1."""
    signal.pthread_sigmask(signal.SIG_BLOCK, _BLOCKED)


def wait(seconds: float) -> int | None:
    """Return the next blocked signal; None after `seconds`, or if the signal is to be ignored."""
    return _accepted(signal.sigtimedwait(_BLOCKED, max(0.0, seconds)))


def stop_requested_within(seconds: float) -> bool:
    """Wait `seconds`; return True immediately if the pod is requested to stop."""
    end = time.monotonic() + seconds
    while True:
        info = signal.sigtimedwait(STOP, max(0.0, end - time.monotonic()))
        if info is None or _accepted(info) is not None:
            return info is not None


def wake_main_thread() -> None:
    """Wake the main thread from `wait`. Called by the other threads."""
    os.kill(os.getpid(), WAKE)


def _accepted(info: signal.struct_siginfo | None) -> int | None:
    """Return the signal number; None for a stop signal from a process of the pod itself.

    The kubelet's signal comes from outside the PID namespace, with sender pid 0. A crew that signals all
    processes must not look like a canceled run.
    """
    global _warned
    if info is None:
        return None
    if info.si_signo in STOP and os.getpid() == 1 and info.si_pid != 0:
        if not _warned:
            _warned = True
            os.write(
                2, b"crewyard: ignored a stop signal from a process of the pod; only Kubernetes can stop it\n"
            )
        return None
    return int(info.si_signo)
