"""Starts the crew's process, which waits on descriptor 4 until it is told what to run. Called by `main`."""

from __future__ import annotations

import fcntl
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

_SIGPIPE = 13  # `signal` and `json` take a while to import; the child shall start before that
_ABOVE = 10  # our ends of the pipes stay clear of the numbers that the child's ends get
CHILD = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))), "child.py")


class Child:
    """The crew's process, leader of its own group; the descriptors are our ends of its pipes."""

    __slots__ = ("channel", "grant", "pid", "stderr", "stdout")

    def __init__(self, pid: int, stdout: int, stderr: int, channel: int, grant: int) -> None:
        self.pid = pid
        self.stdout = stdout
        self.stderr = stderr
        self.channel = channel
        self.grant = grant


def start(environ: Mapping[str, str], program: str = CHILD) -> Child:
    """Starts the child in the current directory; it executes nothing of the crew's yet.

    -I and -S: neither the working directory nor site-packages (with their .pth files and sitecustomize) are
    looked at before the grant; the child does both itself afterwards. Raises OSError.
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
        file_actions=actions, setpgroup=0, setsigmask=(), setsigdef=(_SIGPIPE,),
    )  # fmt: skip
    for theirs in (out_theirs, err_theirs, channel_theirs, grant_theirs):
        os.close(theirs)
    return Child(pid, out_ours, err_ours, channel_ours, grant_ours)


def grant(child: Child, task: Mapping[str, object]) -> None:
    """Tells the child what to run. A child that is gone already is found out by its status, not here."""
    from runner.pid1.api.fast_json import dumps

    line = dumps(task).encode() + b"\n"
    view = memoryview(line)
    try:
        while view:
            view = view[os.write(child.grant, view) :]
    except OSError:
        pass
    os.close(child.grant)


def _pipe() -> tuple[int, int]:
    ends = os.pipe()
    moved = (
        fcntl.fcntl(ends[0], fcntl.F_DUPFD_CLOEXEC, _ABOVE),
        fcntl.fcntl(ends[1], fcntl.F_DUPFD_CLOEXEC, _ABOVE),
    )
    os.close(ends[0])
    os.close(ends[1])
    return moved
