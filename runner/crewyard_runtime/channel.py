"""Whole lines from the crew's process to process 1, over descriptor 3. Used by `events`, `bridge` and `crew`.

Threads, and processes made by fork (multiprocessing's "fork"), share the descriptor. A pipe takes lines of up
to 4096 bytes (PIPE_BUF) whole; for longer ones, every writer holds a lock: one of threads, and one of
processes, which is a lock on the pipe itself, through a descriptor that each process opens for itself.
Programs that the crew executes do not inherit the descriptor: in them emit does nothing.
"""

from __future__ import annotations

import fcntl
import os
from _thread import allocate_lock  # what threading.Lock is, without the import of threading

_descriptor = -1
_lock_descriptor = -1
_threads = allocate_lock()


def open_on(descriptor: int) -> None:
    """Makes `descriptor` the channel of this process. Called once, by `crew`."""
    global _descriptor
    os.set_inheritable(descriptor, False)
    _descriptor = descriptor
    _own_lock()
    os.register_at_fork(after_in_child=_forked)


def is_open() -> bool:
    """Whether this process belongs to a run."""
    return _descriptor >= 0


def write(line: bytes) -> None:
    """Writes one line, without its line feed, whole. Does nothing outside a run or when process 1 is gone."""
    if _descriptor < 0:
        return
    left = memoryview(line + b"\n")
    with _threads:
        _flock(fcntl.LOCK_EX)
        try:
            while left:
                left = left[os.write(_descriptor, left) :]
        except OSError:
            pass  # process 1 closed the pipe: the run is over, and the crew must not fail of its events
        finally:
            _flock(fcntl.LOCK_UN)


def _flock(operation: int) -> None:
    if _lock_descriptor >= 0:
        try:
            fcntl.flock(_lock_descriptor, operation)
        except OSError:
            return


def _own_lock() -> None:
    global _lock_descriptor
    try:
        _lock_descriptor = os.open(f"/proc/self/fd/{_descriptor}", os.O_WRONLY | os.O_CLOEXEC)
    except OSError:
        _lock_descriptor = -1


def _forked() -> None:
    # The copied descriptor would share the parent's lock; the threads' lock may be held by a thread not here.
    global _threads
    _threads = allocate_lock()
    if _lock_descriptor >= 0:
        os.close(_lock_descriptor)
    _own_lock()
