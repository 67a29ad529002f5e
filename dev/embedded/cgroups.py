"""The cgroup of all pods, on cgroup v1 (one tree per controller) and v2 (one tree).

Created before kubelet starts, because kubelet requires its root cgroup to exist. `down` uses it to find the
pods' processes.
"""

import contextlib
import errno
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

from dev.errors import DevClusterError
from dev.settings import CGROUP

_ROOT = Path("/sys/fs/cgroup")
_CONTROLLERS = ("cpu", "cpuset", "memory", "pids", "hugetlb", "io")
# A process that starts while the others move stays behind.
_MOVES_MAX = 5
_SHARES_PER_CPU = 1024
"""What kubelet gives all pods of a node, where the group is not below another one."""


def _trees(root: Path) -> list[Path]:
    if (root / "cgroup.controllers").exists():
        return [root]
    return (
        sorted(path for path in root.iterdir() if (path / "cgroup.procs").exists()) if root.is_dir() else []
    )


def make(root: Path = _ROOT) -> None:
    """Create the cgroup in every tree. Raises DevClusterError if its controllers cannot be enabled."""
    for tree in _trees(root):
        group = tree / CGROUP
        group.mkdir(exist_ok=True)
        shares = group / "cpu.shares"
        if shares.exists():
            # The default is what one thread of the control plane has, which is not in a group.
            shares.write_text(str(_SHARES_PER_CPU * (os.cpu_count() or 1)))
        controllers_file = tree / "cgroup.controllers"
        if controllers_file.exists():
            usable = [name for name in controllers_file.read_text().split() if name in _CONTROLLERS]
            for parent in (tree, group):
                _enable(parent, usable)


def _enable(parent: Path, controllers: list[str]) -> None:
    for _ in range(_MOVES_MAX):
        try:
            # All at once: with cpu alone, the kernel keeps memory off and the processes where they are.
            (parent / "cgroup.subtree_control").write_text(" ".join(f"+{name}" for name in controllers))
            return
        except OSError as error:
            failure = error
            if error.errno != errno.EBUSY:
                break
        _move_processes(parent, parent / "init")
    raise DevClusterError(
        f"The cgroup controllers {', '.join(controllers)} cannot be enabled in {parent}: {failure}. kubelet "
        "needs them. Run `make up` on the machine itself, or in a new container with --privileged."
    ) from failure


def _move_processes(source: Path, target: Path) -> None:
    """Empty the root group of a container, as the entrypoint of Docker-in-Docker does."""
    target.mkdir(exist_ok=True)
    for pid in (source / "cgroup.procs").read_text().split():
        with contextlib.suppress(OSError):  # it has ended
            (target / "cgroup.procs").write_text(pid)


def _groups(root: Path) -> Iterator[Path]:
    """Yield the cgroup and its children in all trees, deepest first."""
    for tree in _trees(root):
        if (tree / CGROUP).is_dir():
            for path, _, _ in os.walk(tree / CGROUP, topdown=False):
                yield Path(path)


def members(root: Path = _ROOT) -> set[int]:
    """Return the ids of all processes in the cgroup."""
    pids = set()
    for group in _groups(root):
        try:
            pids |= {int(line) for line in (group / "cgroup.procs").read_text().split()}
        except OSError:
            continue
    return pids - {0, os.getpid()}


def end_members(grace: float, last: float = 10.0) -> set[int]:
    """Send SIGTERM to all members, SIGKILL after `grace` seconds; return those alive `last` seconds later."""
    for signal_number, seconds in ((signal.SIGTERM, grace), (signal.SIGKILL, last)):
        deadline = time.monotonic() + seconds
        signaled: set[int] = set()
        while (remaining := members()) and time.monotonic() < deadline:
            for pid in remaining - signaled:
                try:
                    os.kill(pid, signal_number)
                except ProcessLookupError:
                    continue
            signaled |= remaining
            time.sleep(0.05)
        if not members():
            return set()
    return members()


def remove(root: Path = _ROOT) -> list[Path]:
    """Remove the cgroup. Return what could not be removed within two seconds."""
    deadline = time.monotonic() + 2
    while True:
        remaining = []
        for group in _groups(root):
            try:
                group.rmdir()
            except OSError:
                remaining.append(group)
        if not remaining or time.monotonic() > deadline:
            return remaining
        time.sleep(0.1)
