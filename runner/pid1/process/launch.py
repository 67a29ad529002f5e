"""Starts the crew's process, which waits for its task on descriptor 4. Called by `main`."""

from __future__ import annotations

import fcntl
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

_SIGPIPE_NUMBER = 13  # importing `signal` would delay the start of the child
_MIN_DESCRIPTOR = 10  # keeps our pipe ends clear of the numbers that the child's ends get
CHILD_PROGRAM = os.path.join(
    os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))), "child.py"
)


class CrewProcess:
    """The crew's process, leader of its process group; the descriptors are our ends of its pipes."""

    __slots__ = ("channel", "grant", "pid", "stderr", "stdout")

    def __init__(self, pid: int, stdout: int, stderr: int, channel: int, grant: int) -> None:
        self.pid = pid
        self.stdout = stdout
        self.stderr = stderr
        self.channel = channel
        self.grant = grant


def start(environ: Mapping[str, str], program: str = CHILD_PROGRAM) -> CrewProcess:
    """Start the child in the current directory; it executes no crew code yet. Raises OSError.

    With -I and -S, Python reads neither the working directory nor site-packages (with .pth files and
    sitecustomize) before the grant; the child sets up both afterwards.
    """
    out_ours, out_theirs = _pipe()
    err_ours, err_theirs = _pipe()
    channel_ours, channel_theirs = _pipe()
    grant_theirs, grant_ours = _pipe()
    actions = [
        (os.POSIX_SPAWN_OPEN, 0, "/dev/null", os.O_RDONLY, 0),
        (os.POSIX_SPAWN_DUP2, out_theirs, 1),
        (os.POSIX_SPAWN_DUP2, err_theirs, 2),
        (os.POSIX_SPAWN_DUP2, channel_theirs, 3),
        (os.POSIX_SPAWN_DUP2, grant_theirs, 4),
    ]
    python = sys.executable or os.readlink("/proc/self/exe")
    pid = os.posix_spawn(
        python, [python, "-I", "-S", program], environ,
        file_actions=actions, setpgroup=0, setsigmask=(), setsigdef=(_SIGPIPE_NUMBER,),
    )  # fmt: skip
    for theirs in (out_theirs, err_theirs, channel_theirs, grant_theirs):
        os.close(theirs)
    return CrewProcess(pid, out_ours, err_ours, channel_ours, grant_ours)


def grant(child: CrewProcess, task: Mapping[str, object], keep_open: bool = False) -> None:
    """Send the task to the child. Ignores a child that has exited; its wait status reports that.

    `keep_open`: answers to the crew's questions follow on the descriptor.
    """
    send(child, task)
    if not keep_open:
        os.close(child.grant)


def grant_in_thread(child: CrewProcess, task: Mapping[str, object], keep_open: bool = False) -> None:
    """Send the task to a child that may still be importing its entrypoint: it reads the task after that."""
    import threading

    threading.Thread(target=grant, args=(child, task, keep_open), daemon=True).start()


def send(child: CrewProcess, message: Mapping[str, object]) -> None:
    """Write a line to the child. Ignores a child that has exited."""
    from runner.pid1.api.fast_json import dumps

    line = dumps(message).encode() + b"\n"
    view = memoryview(line)
    try:
        while view:
            view = view[os.write(child.grant, view) :]
    except OSError:
        pass


def _pipe() -> tuple[int, int]:
    ends = os.pipe()
    moved = (
        fcntl.fcntl(ends[0], fcntl.F_DUPFD_CLOEXEC, _MIN_DESCRIPTOR),
        fcntl.fcntl(ends[1], fcntl.F_DUPFD_CLOEXEC, _MIN_DESCRIPTOR),
    )
    os.close(ends[0])
    os.close(ends[1])
    return moved
