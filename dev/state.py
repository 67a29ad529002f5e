"""The state directory as a whole: made, claimed, locked, removed.

Used by the embedded ground around all it does. A directory that somebody
else fills is refused, since `down --purge` removes what is in it.
"""

import fcntl
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from dev.errors import DevClusterError
from dev.progress import Progress, elapsed
from dev.settings import Settings

_LOCK = "lock"
# A cold `up` takes ten minutes.
_LOCK_TIMEOUT_SECONDS = 1200.0
_KNOWN_ENTRIES = (
    *("bin", "config", "data", "logs", "pki", "run", "kubeconfig", "admin-key", "admin-key.new"),
    *("cluster", "current", "kind"),
)
# Which ground this machine carries, whatever state directory the next command is given.
_MACHINE_RECORD = Path("/run/crewyard-ground")
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


def claim(settings: Settings) -> None:
    """Makes the directory. Raises GroundError if it is there, is not ours and has something in it."""
    state = settings.state
    if state.is_dir() and not (state / _LOCK).exists():
        unknown = sorted(path.name for path in state.iterdir() if path.name not in _KNOWN_ENTRIES)
        if unknown:
            raise DevClusterError(
                f"The state directory {state} has other things in it ({', '.join(unknown[:3])}). "
                "Set CREWYARD_STATE to an empty directory or to one that does not exist."
            )
    try:
        for directory in (state, settings.data, settings.logs):
            directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DevClusterError(f"The state directory cannot be made: {error}. Set CREWYARD_STATE.") from error
    (state / _LOCK).touch(mode=0o600)
    state.chmod(0o700)


@contextmanager
def locked(settings: Settings, progress: Progress, seconds: float = _LOCK_TIMEOUT_SECONDS) -> Iterator[None]:
    """Lets one at a time change the ground; waits its turn. Raises GroundError after `seconds`."""
    claim(settings)
    descriptor = os.open(settings.state / _LOCK, os.O_RDWR)
    try:
        if not _try_lock(descriptor):
            with progress.step("waiting for another `make up`, `deploy` or `down`"):
                _wait_lock(descriptor, seconds)
        yield
    finally:
        os.close(descriptor)


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _wait_lock(descriptor: int, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while not _try_lock(descriptor):
        if time.monotonic() > deadline:
            raise DevClusterError(
                f"Another command has been changing the ground for {elapsed(seconds)}. See `ps`."
            )
        time.sleep(0.2)


def other_state_directory(settings: Settings, path: Path = _MACHINE_RECORD) -> Path | None:
    """The state directory of another ground on this machine. Two would share bridge and addresses."""
    try:
        state = Path(path.read_text().strip())
    except OSError:
        return None
    return None if state == settings.state or not (state / "run").is_dir() else state


def record_machine(settings: Settings, path: Path = _MACHINE_RECORD) -> None:
    """Notes that this machine carries this ground. Raises GroundError if it carries another."""
    other = other_state_directory(settings, path)
    if other:
        raise DevClusterError(
            f"This machine carries a ground already, with its state in {other}. "
            f"Stop it first: CREWYARD_STATE={other} make down"
        )
    path.write_text(f"{settings.state}\n")


def remove_machine_record(path: Path = _MACHINE_RECORD) -> None:
    """Notes that this machine carries no ground."""
    path.unlink(missing_ok=True)


def remove_stale_run_state(settings: Settings, boot_id: Path = _BOOT_ID) -> bool:
    """Drops sockets, records and addresses of processes that a reboot has ended. True if there were such."""
    boot = boot_id.read_text().strip()
    boot_file = settings.run / "boot-id"
    stale = settings.run.is_dir() and (not boot_file.exists() or boot_file.read_text() != boot)
    if stale:
        shutil.rmtree(settings.run)
    settings.run.mkdir(parents=True, exist_ok=True)
    boot_file.write_text(boot)
    return stale


def remove(settings: Settings) -> None:
    """Removes all that is ours, and the directory if nothing else is in it. Nothing may be mounted there."""
    for name in (*_KNOWN_ENTRIES, _LOCK):
        path = settings.state / name
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
    if not any(settings.state.iterdir()):
        settings.state.rmdir()
