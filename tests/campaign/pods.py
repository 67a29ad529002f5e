"""The processes of pods, where the node is this machine. Called by tests that kill a runner."""

import os
import signal
from pathlib import Path


def runner_of(uid: str) -> int | None:
    """The process of this machine that is process 1 of a run pod; None where there is none."""
    marks = (uid, uid.replace("-", "_"))
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            group = (entry / "cgroup").read_text()
            command = (entry / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if any(mark in group for mark in marks) and b"/opt/crewyard/runner" in command:
            return int(entry.name)
    return None


def kill_runner(uid: str, number: signal.Signals = signal.SIGKILL) -> bool:
    """A signal to the runner of a pod; whether there was one."""
    pid = runner_of(uid)
    if pid is None:
        return False
    os.kill(pid, number)
    return True
