"""Closes process 1 to the processes it starts: same user, but no ptrace, no environ, no mem."""

from __future__ import annotations

import ctypes

_PR_SET_DUMPABLE = 4
_PR_SET_CHILD_SUBREAPER = 36


def seal() -> None:
    """Makes this process non-dumpable and the parent of its orphaned descendants. Raises OSError."""
    libc = ctypes.CDLL(None, use_errno=True)
    for option, value in ((_PR_SET_DUMPABLE, 0), (_PR_SET_CHILD_SUBREAPER, 1)):
        if libc.prctl(option, value, 0, 0, 0) != 0:
            raise OSError(ctypes.get_errno(), f"prctl({option}) was refused")
