"""The processes of pods, where the node is this machine. Called by tests that kill a runner or a service."""

import os
import signal
from pathlib import Path

RUNNER = b"/opt/crewyard/runner"


def first_process_of(uid: str, argument: bytes) -> int | None:
    """The process of this machine that is process 1 of a pod and has this argument; None without one."""
    marks = (uid, uid.replace("-", "_"))
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            group = (entry / "cgroup").read_text()
            command = (entry / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if any(mark in group for mark in marks) and argument in command:
            return int(entry.name)
    return None


def kill(uid: str, argument: bytes, number: signal.Signals = signal.SIGKILL) -> bool:
    """A signal to that process; whether there was one."""
    pid = first_process_of(uid, argument)
    if pid is None:
        return False
    os.kill(pid, number)
    return True


def kill_runner(uid: str, number: signal.Signals = signal.SIGKILL) -> bool:
    """A signal to the runner of a pod; whether there was one."""
    return kill(uid, RUNNER, number)
