"""Protects process 1 from the processes it starts: same user, but no ptrace, no environ, no mem."""

from __future__ import annotations

_PR_SET_DUMPABLE = 4
_PR_SET_CHILD_SUBREAPER = 36


def protect() -> None:
    """Make this process non-dumpable and the subreaper of its orphaned descendants. Raises OSError."""
    for option, value in ((_PR_SET_DUMPABLE, 0), (_PR_SET_CHILD_SUBREAPER, 1)):
        if _prctl(option, value) != 0:
            raise OSError(f"prctl({option}) failed")


def _prctl(option: int, value: int) -> int:
    # Use the C part of `ctypes` directly: importing the module takes longer than the claim.
    try:
        from _ctypes import call_function, dlopen, dlsym

        own = dlopen(None, 0)  # type: ignore[arg-type]
        return int(call_function(dlsym(own, "prctl"), (option, value, 0, 0, 0)))
    except (ImportError, TypeError):
        import ctypes

        return int(ctypes.CDLL(None).prctl(option, value, 0, 0, 0))
