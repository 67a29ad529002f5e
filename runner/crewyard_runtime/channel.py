"""The event channel: lines from the crew's process to process 1 on descriptor 3.

Used by `events`, `logging_bridge` and `crew`. Threads and forked processes (multiprocessing's "fork") share
the descriptor. A pipe writes lines of up to 4096 bytes (PIPE_BUF) atomically; for longer ones, every writer
holds two locks: one between threads, and one between processes, a lock on the pipe itself through a
descriptor that each process opens separately. Programs that the crew executes do not inherit the descriptor:
emit does nothing there.

Before each line, a marker goes to standard output and error, so process 1 knows which output precedes the
line.
"""

from __future__ import annotations

import fcntl
import os
import sys
from _thread import RLock  # threading.RLock without importing threading

_descriptor = -1
_lock_descriptor = -1
_pipes: dict[int, tuple[int, int]] = {}  # identity of our descriptors at the start; a crew may close them
_threads = RLock()
_pending: list[bytes] = []
_count = 0


def open_on(descriptor: int) -> None:
    """Use `descriptor` as the channel of this process. Called once, by `crew`."""
    global _descriptor
    os.set_inheritable(descriptor, False)
    _descriptor = descriptor
    for fd in (descriptor, 1, 2):
        _pipes[fd] = _identity(fd)
    _open_lock()
    os.register_at_fork(after_in_child=_after_fork)


def is_open() -> bool:
    """Return whether this process belongs to a run."""
    return _descriptor >= 0


def write(line: bytes) -> None:
    """Write one JSON object, given without a line feed, atomically. Do nothing outside a run or after it."""
    if _descriptor < 0:
        return
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except Exception:  # the crew may have closed or replaced it, or be inside a print
            continue
    _pending.append(line)
    if _threads._is_owned():  # type: ignore[attr-defined]
        return  # called from a signal handler or finalizer inside the loop below, which sends this line too
    with _threads:
        _flock(fcntl.LOCK_EX)
        try:
            while _pending:
                _send(_pending.pop(0))
        except OSError:
            pass  # process 1 closed the pipe: the run is over, and events must not fail the crew
        finally:
            _flock(fcntl.LOCK_UN)


def _send(line: bytes) -> None:
    global _count
    _count += 1
    name = f"{os.getpid()}.{_count}"
    marked = "".join(letter for fd, letter in ((1, "o"), (2, "e")) if _write_marker(fd, name))
    remaining = memoryview(f'{{"mark": "{name}", "in": "{marked}", '.encode() + line[1:] + b"\n")
    # The lock's descriptor is the same pipe, for a crew that has closed all descriptors it did not open.
    to = _descriptor if _is_unchanged(_descriptor, _descriptor) else _lock_descriptor
    while remaining:
        remaining = remaining[os.write(to, remaining) :]


def _write_marker(descriptor: int, name: str) -> bool:
    if not _is_unchanged(descriptor, descriptor):
        return False
    mark = f"\0\x1ecrewyard:{name}\x1e\0".encode()
    try:
        return os.write(descriptor, mark) == len(mark)
    except OSError:
        return False


def _is_unchanged(descriptor: int, original: int) -> bool:
    return _pipes[original] != (0, 0) and _identity(descriptor) == _pipes[original]


def _identity(descriptor: int) -> tuple[int, int]:
    """Return device and inode of the descriptor's pipe, (0, 0) if it is not a pipe."""
    try:
        status = os.fstat(descriptor)
    except OSError:
        return 0, 0
    return (status.st_dev, status.st_ino) if status.st_mode & 0o170000 == 0o010000 else (0, 0)


def _flock(operation: int) -> None:
    if _lock_descriptor >= 0 and _is_unchanged(_lock_descriptor, _descriptor):
        try:
            fcntl.flock(_lock_descriptor, operation)
        except OSError:
            return


def _open_lock() -> None:
    global _lock_descriptor
    try:
        opened = os.open(f"/proc/self/fd/{_descriptor}", os.O_WRONLY | os.O_CLOEXEC)
        # Above the descriptors that a program closes that closes "all" of them.
        _lock_descriptor = fcntl.fcntl(opened, fcntl.F_DUPFD_CLOEXEC, 512)
        os.close(opened)
    except OSError:
        _lock_descriptor = -1


def _after_fork() -> None:
    # The copied descriptor would share the parent's lock; a thread that fork did not copy may hold the RLock.
    global _threads
    _threads = RLock()
    _pending.clear()  # the parent's threads send these
    if _lock_descriptor >= 0 and _is_unchanged(_lock_descriptor, _descriptor):
        os.close(_lock_descriptor)
    _open_lock()
