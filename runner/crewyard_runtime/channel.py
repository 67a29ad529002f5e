"""Whole lines from the crew's process to process 1, over descriptor 3. Used by `events`, `bridge` and `crew`.

Threads, and processes made by fork (multiprocessing's "fork"), share the descriptor. A pipe takes lines of up
to 4096 bytes (PIPE_BUF) whole; for longer ones, every writer holds a lock: one of threads, and one of
processes, which is a lock on the pipe itself, through a descriptor that each process opens for itself.
Programs that the crew executes do not inherit the descriptor: in them emit does nothing.

Before a line, a mark of its name goes into standard output and error, so that process 1 knows what was
printed before it and what after.
"""

from __future__ import annotations

import fcntl
import os
import sys
from _thread import RLock  # what threading.RLock is, without the import of threading

_descriptor = -1
_lock_descriptor = -1
_pipes: dict[int, tuple[int, int]] = {}  # what our descriptors were at the start; a crew may close them
_threads = RLock()
_waiting: list[bytes] = []
_count = 0


def open_on(descriptor: int) -> None:
    """Makes `descriptor` the channel of this process. Called once, by `crew`."""
    global _descriptor
    os.set_inheritable(descriptor, False)
    _descriptor = descriptor
    for one in (descriptor, 1, 2):
        _pipes[one] = _identity(one)
    _own_lock()
    os.register_at_fork(after_in_child=_forked)


def is_open() -> bool:
    """Whether this process belongs to a run."""
    return _descriptor >= 0


def write(line: bytes) -> None:
    """Writes one JSON object, without a line feed, whole. Does nothing outside a run or when it is over."""
    if _descriptor < 0:
        return
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except Exception:  # the crew may have closed or replaced it, or be in the middle of a print
            continue
    _waiting.append(line)
    if _threads._is_owned():  # type: ignore[attr-defined]
        return  # a signal's handler or a finalizer in the middle of the loop below, which takes this line too
    with _threads:
        _flock(fcntl.LOCK_EX)
        try:
            while _waiting:
                _send(_waiting.pop(0))
        except OSError:
            pass  # process 1 closed the pipe: the run is over, and the crew must not fail of its events
        finally:
            _flock(fcntl.LOCK_UN)


def _send(line: bytes) -> None:
    global _count
    _count += 1
    name = f"{os.getpid()}.{_count}"
    marked = "".join(letter for one, letter in ((1, "o"), (2, "e")) if _marked(one, name))
    left = memoryview(f'{{"mark": "{name}", "in": "{marked}", '.encode() + line[1:] + b"\n")
    # The lock's descriptor leads to the same pipe, for a crew that has closed all that it did not open.
    to = _descriptor if _is_ours(_descriptor, _descriptor) else _lock_descriptor
    while left:
        left = left[os.write(to, left) :]


def _marked(descriptor: int, name: str) -> bool:
    if not _is_ours(descriptor, descriptor):
        return False
    mark = f"\0\x1ecrewyard:{name}\x1e\0".encode()
    try:
        return os.write(descriptor, mark) == len(mark)
    except OSError:
        return False


def _is_ours(descriptor: int, was: int) -> bool:
    return _pipes[was] != (0, 0) and _identity(descriptor) == _pipes[was]


def _identity(descriptor: int) -> tuple[int, int]:
    """What the descriptor leads to, (0, 0) if that is no pipe."""
    try:
        status = os.fstat(descriptor)
    except OSError:
        return 0, 0
    return (status.st_dev, status.st_ino) if status.st_mode & 0o170000 == 0o010000 else (0, 0)


def _flock(operation: int) -> None:
    if _lock_descriptor >= 0 and _is_ours(_lock_descriptor, _descriptor):
        try:
            fcntl.flock(_lock_descriptor, operation)
        except OSError:
            return


def _own_lock() -> None:
    global _lock_descriptor
    try:
        own = os.open(f"/proc/self/fd/{_descriptor}", os.O_WRONLY | os.O_CLOEXEC)
        # Above what a program closes that closes "all" descriptors.
        _lock_descriptor = fcntl.fcntl(own, fcntl.F_DUPFD_CLOEXEC, 512)
        os.close(own)
    except OSError:
        _lock_descriptor = -1


def _forked() -> None:
    # The copied descriptor would share the parent's lock; the threads' lock may be held by a thread not here.
    global _threads
    _threads = RLock()
    _waiting.clear()  # the parent's threads send theirs
    if _lock_descriptor >= 0 and _is_ours(_lock_descriptor, _descriptor):
        os.close(_lock_descriptor)
    _own_lock()
