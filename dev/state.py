"""The state directory: create, claim, lock, remove.

Used by all dev clusters. A directory with other content is refused, because `down --purge` deletes its
content.
"""

import fcntl
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from dev import files
from dev.errors import DevClusterError
from dev.progress import Step, StepProgress, elapsed
from dev.settings import Settings

_LOCK = "lock"
# A cold `up` takes ten minutes.
_LOCK_TIMEOUT_SECONDS = 1200.0
_KNOWN_ENTRIES = (
    *("bin", "config", "data", "logs", "pki", "run", "kubeconfig", "admin-key", "cluster", "current", "kind"),
    *(name + files.FRESH_SUFFIX for name in ("kubeconfig", "admin-key", "cluster")),
    *("tests.service", "tests.turn"),  # locks of tests.lanes
)
# Records the dev cluster of this machine, independent of the next command's state directory.
_MACHINE_RECORD = Path("/run/crewyard-ground")
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


def claim(settings: Settings) -> None:
    """Create the directory. Raises DevClusterError if it has other content, or cannot be written."""
    state = settings.state
    if state.is_dir() and not (state / _LOCK).exists():
        unknown = sorted(path.name for path in state.iterdir() if path.name not in _KNOWN_ENTRIES)
        if unknown:
            raise DevClusterError(
                f"The state directory {state} has other content ({', '.join(unknown[:3])}). "
                "Set CREWYARD_STATE to an empty or new directory."
            )
    try:
        for directory in (state, settings.data, settings.logs):
            directory.mkdir(parents=True, exist_ok=True)
        (state / _LOCK).touch(mode=0o600)
        state.chmod(0o700)
    except OSError as error:
        raise DevClusterError(
            f"The state directory cannot be written: {error}. Set CREWYARD_STATE to another directory."
        ) from error


@contextmanager
def locked(
    settings: Settings, progress: StepProgress, seconds: float = _LOCK_TIMEOUT_SECONDS
) -> Iterator[None]:
    """Hold the lock that serialises changes. Raises DevClusterError after `seconds`."""
    claim(settings)
    descriptor = os.open(settings.state / _LOCK, os.O_RDWR)
    with hold(descriptor, progress, "changes the dev cluster", seconds):
        yield


@contextmanager
def hold(
    descriptor: int, progress: StepProgress, action: str, seconds: float = _LOCK_TIMEOUT_SECONDS
) -> Iterator[None]:
    """Hold the lock of an open file or directory, and close it. Raises DevClusterError after `seconds`."""
    try:
        if not try_lock(descriptor):
            with progress.step(f"waiting for another command that {action}") as step:
                _wait_lock(descriptor, step, action, seconds)
        yield
    finally:
        os.close(descriptor)


def try_lock(descriptor: int) -> bool:
    """Lock an open file or directory. Return whether nothing else has locked it."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _wait_lock(descriptor: int, step: Step, action: str, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while not try_lock(descriptor):
        if step.stopped.is_set():
            raise DevClusterError("The wait was stopped: another step failed.")
        if time.monotonic() > deadline:
            raise DevClusterError(
                f"Another command that {action} has been running for {elapsed(seconds)}. See `ps`."
            )
        time.sleep(0.2)


def other_state_directory(settings: Settings, path: Path = _MACHINE_RECORD) -> Path | None:
    """Return the state directory of another dev cluster on this machine, if any.

    Two would share bridge and addresses.
    """
    try:
        state = Path(path.read_text().strip())
    except OSError:
        return None
    return None if state == settings.state or not (state / "run").is_dir() else state


def check_machine(settings: Settings, path: Path = _MACHINE_RECORD) -> None:
    """Raise DevClusterError if this machine runs another embedded node."""
    other = other_state_directory(settings, path)
    if other:
        raise DevClusterError(
            f"This machine already runs a dev cluster, with its state in {other}. "
            f"Stop it first: CREWYARD_STATE={other} make down"
        )


def record_machine(settings: Settings, path: Path = _MACHINE_RECORD) -> None:
    """Record that this machine runs this dev cluster. Raises DevClusterError if it runs another."""
    check_machine(settings, path)
    files.write(path, f"{settings.state}\n")


def remove_machine_record(path: Path = _MACHINE_RECORD) -> None:
    """Record that this machine runs no dev cluster."""
    path.unlink(missing_ok=True)


def remove_stale_run_state(settings: Settings, boot_id: Path = _BOOT_ID) -> bool:
    """Remove sockets, records and addresses from before a reboot. Return whether there were any."""
    boot = boot_id.read_text().strip()
    boot_file = settings.run / "boot-id"
    stale = settings.run.is_dir() and (not boot_file.exists() or boot_file.read_text() != boot)
    if stale:
        shutil.rmtree(settings.run)
    files.write(boot_file, boot)
    return stale


def remove(settings: Settings) -> None:
    """Remove the known entries, and the directory if it is then empty. Nothing may be mounted there."""
    for name in (*_KNOWN_ENTRIES, _LOCK):
        path = settings.state / name
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
    if not any(settings.state.iterdir()):
        settings.state.rmdir()
