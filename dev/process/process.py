"""Identity and termination of processes.

Used by `dev.process.program`. A pid alone can belong to another process: pids are reused, after a reboot all
of them. A process is therefore identified by pid and start time, and signals go through a pidfd, which never
refers to another process.
"""

import json
import os
import select
import signal
from dataclasses import asdict, dataclass
from pathlib import Path

from dev import files

_STATE_FIELD = 0
_START_TIME_FIELD = 19


@dataclass(frozen=True)
class ProcessIdentity:
    """One process of this boot. `started` is in clock ticks since the boot."""

    pid: int
    started: int


@dataclass(frozen=True)
class ProcessRecord:
    """Content of a pid file: the process, and a hash of its start parameters."""

    pid: int
    started: int
    fingerprint: str

    @property
    def identity(self) -> ProcessIdentity:
        """The recorded process."""
        return ProcessIdentity(self.pid, self.started)


def identity_of(pid: int) -> ProcessIdentity | None:
    """Return the identity of the live process with this pid; None if there is none or it is a zombie."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    # The second field is the program's name in brackets and may hold anything, brackets included.
    fields = text[text.rindex(")") + 2 :].split()
    if fields[_STATE_FIELD] in ("Z", "X"):
        return None
    return ProcessIdentity(pid, int(fields[_START_TIME_FIELD]))


def write(path: Path, record: ProcessRecord) -> None:
    """Write a pid file atomically."""
    files.write(path, json.dumps(asdict(record)))


def read(path: Path) -> ProcessRecord | None:
    """Return the pid file's record if its process is alive; None for a missing, broken or stale file."""
    try:
        record = ProcessRecord(**json.loads(path.read_text()))
    except (OSError, ValueError, TypeError):
        return None
    return record if identity_of(record.pid) == record.identity else None


def stop(identity: ProcessIdentity, grace: float, kill_wait: float = 5.0) -> bool:
    """Send SIGTERM, after `grace` s SIGKILL, then wait `kill_wait` s. Return whether the process ended."""
    try:
        descriptor = os.pidfd_open(identity.pid)
    except OSError:
        return True
    try:
        if identity_of(identity.pid) != identity:
            return True
        for signal_number, seconds in ((signal.SIGTERM, grace), (signal.SIGKILL, kill_wait)):
            try:
                signal.pidfd_send_signal(descriptor, signal_number)
            except ProcessLookupError:
                return True
            if _wait_exit(descriptor, seconds):
                return True
        return False
    finally:
        os.close(descriptor)


def _wait_exit(descriptor: int, seconds: float) -> bool:
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return bool(poll.poll(seconds * 1000))
