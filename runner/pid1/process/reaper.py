"""Kills and reaps the processes of the crew. Called by `work`."""

from __future__ import annotations

import _signal as signal  # type: ignore[import-not-found]
import os
import time
from contextlib import suppress


def wait_status(pid: int) -> int | None:
    """Return the wait status of the crew's process if it has exited, else None; reap exited orphans.

    Does not reap the crew's process itself, to keep its process group id from being reused.
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


def signal_group(pid: int, number: int) -> None:
    """Send a signal to the crew's process group; ignore a group that no longer exists."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, number)


def kill_all(pid: int, seconds: float) -> bool:
    """Kill and reap the crew's group and all other processes of the pod; return True if none remain."""
    signal_group(pid, signal.SIGKILL)
    end = time.monotonic() + seconds
    pause = 0.0005
    while True:
        if os.getpid() == 1:
            with suppress(ProcessLookupError):
                os.kill(-1, signal.SIGKILL)  # in the pod's PID namespace: all processes but process 1
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
    """Return the children; outside a pod (in tests) orphans too, since this process is a subreaper."""
    children: list[int] = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", "rb") as file:
                    fields = file.read().rpartition(b")")[2].split()
            except OSError:
                continue
            if int(fields[1]) == parent and fields[0] != b"Z":
                children.append(int(name))
    return children
