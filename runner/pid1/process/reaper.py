"""Ends every process of the crew and takes over the dead. Called by `work`."""

from __future__ import annotations

import _signal as signal  # type: ignore[import-not-found]
import os
import time
from contextlib import suppress


def ended(pid: int) -> int | None:
    """The wait status of the crew's process once it is dead, else None. Orphans that died are reaped on
    the way.

    The crew's process itself stays unreaped, so that its group's number cannot belong to anybody else yet.
    """
    while True:
        try:
            info = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except ChildProcessError:
            return None
        if info is None:
            return None
        if info.si_pid == pid:
            code: int = info.si_status
            return code if info.si_code != os.CLD_EXITED else code << 8
        os.waitpid(info.si_pid, 0)


def ask(pid: int, number: int) -> None:
    """Sends a signal to the crew's process group; a group that is gone needs none."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, number)


def clear(pid: int, seconds: float) -> bool:
    """Kills the crew's group and every other process of the pod and reaps them. True if none is left."""
    ask(pid, signal.SIGKILL)
    end = time.monotonic() + seconds
    pause = 0.0005
    while True:
        if os.getpid() == 1:
            with suppress(ProcessLookupError):
                os.kill(-1, signal.SIGKILL)  # in a pod's own process namespace: everything but process 1
        else:
            for orphan in _children(os.getpid()):
                os.kill(orphan, signal.SIGKILL)
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return True
        if time.monotonic() >= end:
            return False
        time.sleep(pause)
        pause = min(0.02, pause * 2)


def _children(parent: int) -> list[int]:
    """Outside a pod (in the tests) orphans come to this process too, since it is a subreaper."""
    found: list[int] = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", "rb") as file:
                    fields = file.read().rpartition(b")")[2].split()
            except OSError:
                continue
            if int(fields[1]) == parent and fields[0] != b"Z":
                found.append(int(name))
    return found
