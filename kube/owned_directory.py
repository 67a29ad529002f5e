"""Directories that belong to one process. A killed process leaves its own; the next to start removes it.

A process locks its directory, and the kernel releases the lock when it ends, also by a signal. Called by the
main modules of controller and API server, by the backup, by what fetches from git, and by the tests.
"""

import fcntl
import itertools
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import lru_cache
from pathlib import Path

TEMPORARY_PREFIX = "crewyard-process-"
GIT_PREFIX = "crewyard-git-"
MAX_REMOVED_DIRECTORIES = 100
"""At each start, so that no start takes long; the next one continues."""


@contextmanager
def owned_directory(parent: Path, prefix: str) -> Iterator[Path]:
    """Remove directories of that prefix whose process has ended; yield a new one and delete it afterwards."""
    remove_abandoned(parent, prefix)
    with _new_directory(parent, prefix) as path:
        yield path


@contextmanager
def _new_directory(parent: Path, prefix: str) -> Iterator[Path]:
    # Another process must not find it before the lock: it gets its name with the lock.
    unlocked = Path(tempfile.mkdtemp(prefix=f".{prefix}", dir=parent))
    descriptor = os.open(unlocked, os.O_RDONLY | os.O_DIRECTORY)
    try:
        # A file system without locks has no leftovers removed.
        with suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        path = unlocked.rename(unlocked.with_name(unlocked.name[1:]))
        try:
            yield path
        finally:
            shutil.rmtree(path, ignore_errors=True)
    finally:
        os.close(descriptor)


@contextmanager
def own_temporary_directory() -> Iterator[Path]:
    """Have this process and its children create temporary files in a directory of its own."""
    before = os.environ.get("TMPDIR"), tempfile.tempdir
    with owned_directory(Path(tempfile.gettempdir()), TEMPORARY_PREFIX) as path:
        os.environ["TMPDIR"] = tempfile.tempdir = str(path)
        try:
            yield path
        finally:
            os.environ.pop("TMPDIR")
            if before[0] is not None:
                os.environ["TMPDIR"] = before[0]
            tempfile.tempdir = before[1]


def git_directory() -> AbstractContextManager[Path]:
    """Return a temporary directory for what is fetched or listed from git; each fetch takes one."""
    parent = Path(tempfile.gettempdir())
    _remove_abandoned_git(parent)
    return _new_directory(parent, GIT_PREFIX)


@lru_cache(maxsize=8)
def _remove_abandoned_git(parent: Path) -> None:
    """Remove abandoned directories once: a look at those of all other requests costs more than a new one."""
    remove_abandoned(parent, GIT_PREFIX)


def remove_abandoned(parent: Path, prefix: str) -> int:
    """Remove directories of ended processes of this user; return how many."""
    abandoned = filter(_remove_if_abandoned, parent.glob(f"{prefix}*"))
    return sum(1 for _ in itertools.islice(abandoned, MAX_REMOVED_DIRECTORIES))


def _remove_if_abandoned(path: Path) -> bool:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError:
        return False
    try:
        if os.fstat(descriptor).st_uid != os.getuid():
            return False
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(path, ignore_errors=True)
        return not path.exists()
    except OSError:
        return False
    finally:
        os.close(descriptor)
