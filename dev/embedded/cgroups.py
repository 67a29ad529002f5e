"""The cgroup that all pods live in, on cgroup v1 (a tree per controller) and v2 (one tree).

Made before kubelet, which demands its root to be there; at `down` it says
which processes are the pods'.
"""

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

from dev.settings import CGROUP

_ROOT = Path("/sys/fs/cgroup")
_WANTED = ("cpu", "cpuset", "memory", "pids", "hugetlb", "io")


def _trees(root: Path) -> list[Path]:
    if (root / "cgroup.controllers").exists():
        return [root]
    return (
        sorted(path for path in root.iterdir() if (path / "cgroup.procs").exists()) if root.is_dir() else []
    )


def make(root: Path = _ROOT) -> None:
    """Makes the group in every tree."""
    for tree in _trees(root):
        group = tree / CGROUP
        group.mkdir(exist_ok=True)
        offered = tree / "cgroup.controllers"
        if offered.exists():
            usable = [name for name in offered.read_text().split() if name in _WANTED]
            for parent in (tree, group):
                for name in usable:
                    _enable(parent, name)


def _enable(parent: Path, controller: str) -> None:
    # A controller that the system's own manager holds back stays off; kubelet then names it.
    try:
        (parent / "cgroup.subtree_control").write_text(f"+{controller}")
    except OSError:
        return


def _groups(root: Path) -> Iterator[Path]:
    """Our groups of all trees, deepest first."""
    for tree in _trees(root):
        if (tree / CGROUP).is_dir():
            for path, _, _ in os.walk(tree / CGROUP, topdown=False):
                yield Path(path)


def members(root: Path = _ROOT) -> set[int]:
    """The ids of all processes in our group."""
    found = set()
    for group in _groups(root):
        try:
            found |= {int(line) for line in (group / "cgroup.procs").read_text().split()}
        except OSError:
            continue
    return found - {0, os.getpid()}


def end_members(grace: float, last: float = 10.0) -> set[int]:
    """SIGTERM to all members, after `grace` seconds SIGKILL; who is left after `last` more comes back."""
    for number, seconds in ((signal.SIGTERM, grace), (signal.SIGKILL, last)):
        deadline = time.monotonic() + seconds
        sent: set[int] = set()
        while (left := members()) and time.monotonic() < deadline:
            for pid in left - sent:
                try:
                    os.kill(pid, number)
                except ProcessLookupError:
                    continue
            sent |= left
            time.sleep(0.05)
        if not members():
            return set()
    return members()


def remove(root: Path = _ROOT) -> list[Path]:
    """Removes the group. What cannot be removed within two seconds comes back."""
    deadline = time.monotonic() + 2
    while True:
        left = []
        for group in _groups(root):
            try:
                group.rmdir()
            except OSError:
                left.append(group)
        if not left or time.monotonic() > deadline:
            return left
        time.sleep(0.1)
