"""Scan of a directory, which the crew may change at any time. Used by `upload` and `outside`."""

from __future__ import annotations

import itertools
import os
import stat

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_ENTRIES_PER_SCAN = 100_000
_MAX_DEPTH = 64
_MAX_NAME_BYTES = 1024

FileSignature = tuple[int, int, int, int]


class ArtifactFile:
    """A regular file: its name, the path to open below `root`, and a signature of its version."""

    __slots__ = ("device", "name", "path", "root", "signature", "size")

    def __init__(self, root: str, name: str, path: str, status: os.stat_result) -> None:
        self.root = root
        self.name = name
        self.path = path
        self.size = status.st_size
        self.device = status.st_dev
        # The crew can set back mtime, but not ctime.
        self.signature: FileSignature = (
            status.st_ino,
            status.st_size,
            status.st_mtime_ns,
            status.st_ctime_ns,
        )


def scan(root: str, skip: frozenset[str] = frozenset()) -> tuple[list[ArtifactFile], dict[str, str]]:
    """Return the files below `root`, and the names that cannot be stored with the reason.

    Leaves out the directories of the root that `skip` names, and all directories called __pycache__ with it.
    """
    files: list[ArtifactFile] = []
    refused: dict[str, str] = {}
    count = 0
    for entry, name in _walk(root, "", 0, refused, skip):
        count += 1
        if count > MAX_ENTRIES_PER_SCAN:
            refused["."] = f"there are more than {MAX_ENTRIES_PER_SCAN} entries"
            break
        if entry is None:
            continue
        try:
            problem, path, status = _check_entry(root, entry, name)
        except OSError:
            continue  # removed or changed meanwhile: the next scan checks it again
        if problem:
            refused[name] = problem
        elif status is not None:
            files.append(ArtifactFile(root, name, path, status))
    return files, refused


def open_inside(root: str, path: str) -> int:
    """Open `root`/`path` for reading without following symbolic links. Raises OSError.

    Process 1 has more permissions than the crew, so it resolves each name only once.
    """
    at = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    parts = path.split("/")
    try:
        for part in parts[:-1]:
            below = os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=at)
            os.close(at)
            at = below
        return os.open(parts[-1], os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=at)
    finally:
        os.close(at)


def open_for_writing() -> set[tuple[int, int]]:
    """Return (device, inode) of every file that another process holds open for writing."""
    inodes: set[tuple[int, int]] = set()
    for process in os.listdir("/proc"):
        if not process.isdigit() or int(process) == os.getpid():
            continue
        directory = f"/proc/{process}/fd"
        try:
            for number in os.listdir(directory):
                link = f"{directory}/{number}"
                if os.lstat(link).st_mode & stat.S_IWUSR:
                    status = os.stat(link)
                    if stat.S_ISREG(status.st_mode):
                        inodes.add((status.st_dev, status.st_ino))
        except OSError:
            continue
    return inodes


def _walk(
    root: str, prefix: str, depth: int, refused: dict[str, str], skip: frozenset[str]
) -> Iterator[tuple[os.DirEntry[str] | None, str]]:
    """Yield files, and None for directories, with their names."""
    try:
        with os.scandir(os.path.join(root, prefix) if prefix else root) as entries:
            # One entry above the limit suffices to detect it; the order then no longer matters.
            listed = sorted(itertools.islice(entries, MAX_ENTRIES_PER_SCAN + 1), key=lambda entry: entry.name)
    except OSError as error:
        if prefix:
            refused[prefix] = f"the directory cannot be read ({error.strerror})"
        return
    for entry in listed:
        name = f"{prefix}/{entry.name}" if prefix else entry.name
        if entry.is_dir(follow_symlinks=False):
            yield None, name
            if name in skip or (skip and entry.name == "__pycache__"):
                continue
            if depth >= _MAX_DEPTH:
                refused[name] = f"it is more than {_MAX_DEPTH} directories deep"
            else:
                yield from _walk(root, name, depth + 1, refused, skip)
        else:
            yield entry, name


def _check_entry(root: str, entry: os.DirEntry[str], name: str) -> tuple[str, str, os.stat_result | None]:
    try:
        if len(name.encode()) > _MAX_NAME_BYTES:
            return f"its name is longer than {_MAX_NAME_BYTES} bytes", "", None
    except UnicodeEncodeError:
        return "its name is not UTF-8", "", None
    path = name
    if entry.is_symlink():
        real, base = os.path.realpath(os.path.join(root, name)), os.path.realpath(root)
        if not real.startswith(base + "/"):
            return "it is a link that points outside the directory", "", None
        path = real[len(base) + 1 :]
    status = os.stat(os.path.join(root, path), follow_symlinks=False)
    if stat.S_ISDIR(status.st_mode):
        return "it is a link to a directory", "", None
    if not stat.S_ISREG(status.st_mode):
        return "it is not a regular file", "", None
    return "", path, status
