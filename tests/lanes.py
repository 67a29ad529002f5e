"""Groups of test files for parallel pytest workers, and the lock between tests of the installed service.

Called by tests/conftest.py. Tests of the installed service share it and its node: they run in three
sequences, each on one worker. All other tests have their own processes and namespaces: each file is a group
of its own, or a folder whose files share a costly fixture.
"""

import contextlib
import fcntl
import functools
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

HERE = Path(__file__).parent
FREE = ("e2e/docs/test_documentation_site.py",)
"""Files in the folders of a lane that use nothing of the service: browser tests."""
LANES = {
    "node": (
        "e2e/isolation",
        "e2e/nodes/test_node_lost.py",
        "security/test_names.py",
        "security/test_rights.py",
        "security/test_writers_policy.py",
        "monitoring/test_scrape.py",
        "e2e/builds/test_build_queue.py",
        "e2e/nodes/test_outage.py",
        "security/test_canary.py",
    ),
    "builds": ("e2e/builds", "e2e/frameworks", "e2e/git", "actions/test_real.py"),
    "runs": ("e2e", "clients/test_whole.py"),
}
"""Lane -> its files and folders, in their order.

The attacks on the node listen on the same addresses, so one lane has them all. Exclusive tests come last,
when the other lanes have ended.
"""
SHARED = ("clients",)
"""Folders whose files share a fixture that takes longer than their tests."""
ORDER = (
    *(part for parts in LANES.values() for part in parts),
    "campaign",
    "cluster",
    "heavy",
    "clients",
    "registry",
    "monitoring",
    "actions",
    "security",
    "fuzz",
    "unit",
    "browser",
)
"""A file of a folder that takes minutes starts before one whose files take seconds.

Browser tests come last: Chromium aborts requests when a pod changes the machine's interfaces.
"""


@functools.cache
def lane(path: Path) -> str | None:
    """Return the lane of a test file, or None if it does not use the installed service. Pure."""
    if _is_in(path, FREE):
        return None
    return next((name for name, parts in LANES.items() if _is_in(path, parts)), None)


@functools.cache
def group(path: Path) -> str:
    """Return the group of a test file: one worker runs it. Pure."""
    folder = next((name for name in SHARED if _is_in(path, (name,))), None)
    return lane(path) or folder or path.relative_to(HERE).as_posix()


@functools.cache
def rank(path: Path) -> int:
    """Return the place of a test file in the order. Pure."""
    if _is_in(path, FREE):
        return ORDER.index("browser")
    return next((place for place, part in enumerate(ORDER) if _is_in(path, (part,))), len(ORDER))


def _is_in(path: Path, parts: tuple[str, ...]) -> bool:
    return any(path.is_relative_to(HERE / part) for part in parts)


@contextlib.contextmanager
def service_lock(exclusive: bool) -> Iterator[None]:
    """Hold the service: together with other tests, or alone.

    A test that waits to be alone holds the turn, so no other test starts before it.
    """
    place = Path(os.environ.get("CREWYARD_STATE", tempfile.gettempdir()))
    with _opened(place / "tests.turn") as turn, _opened(place / "tests.service") as service:
        fcntl.flock(turn, fcntl.LOCK_EX)
        fcntl.flock(service, fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH)
        fcntl.flock(turn, fcntl.LOCK_UN)
        yield


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[int]:
    """Open a lock file; its lock ends when it is closed."""
    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        yield file
    finally:
        os.close(file)
