"""What lies in the artifacts directory. Used by `upload`; the crew may change it at any moment."""

from __future__ import annotations

import itertools
import os
import stat

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

MOST_ENTRIES = 100_000  # looked at in one scan
_DEEPEST = 64
_LONGEST_NAME = 1024

Signature = tuple[int, int, int, int]


class Found:
    """One regular file: its name, the path to open below the root, and what tells its versions apart."""

    __slots__ = ("device", "name", "path", "signature", "size")

    def __init__(self, name: str, path: str, status: os.stat_result) -> None:
        self.name = name
        self.path = path
        self.size = status.st_size
        self.device = status.st_dev
        # The time of the last status change cannot be set back by the crew, the others can.
        self.signature: Signature = (status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)


def scan(root: str) -> tuple[list[Found], dict[str, str]]:
    """The files below `root` by name, and what is not stored with the reason."""
    found: list[Found] = []
    refused: dict[str, str] = {}
    seen = 0
    for entry, name in _walk(root, "", 0, refused):
        seen += 1
        if seen > MOST_ENTRIES:
            refused["."] = f"there are more than {MOST_ENTRIES} entries"
            break
        if entry is None:
            continue
        try:
            trouble, path, status = _look(root, entry, name)
        except OSError:
            continue  # gone or changed meanwhile: the next scan looks again
        if trouble:
            refused[name] = trouble
        elif status is not None:
            found.append(Found(name, path, status))
    return found, refused


def open_inside(root: str, path: str) -> int:
    """A descriptor to read `root`/`path`, following no symbolic link on the way. Raises OSError.

    Process 1 reads with rights that the crew shall not borrow, so no name is looked up twice.
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


def being_written() -> set[tuple[int, int]]:
    """(device, inode) of every file that another process holds open for writing."""
    held: set[tuple[int, int]] = set()
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
                        held.add((status.st_dev, status.st_ino))
        except OSError:
            continue
    return held


def _walk(
    root: str, prefix: str, depth: int, refused: dict[str, str]
) -> Iterator[tuple[os.DirEntry[str] | None, str]]:
    """Files and directories (None) with their names."""
    try:
        with os.scandir(os.path.join(root, prefix) if prefix else root) as entries:
            # One too many is enough to know; their order then counts no more.
            listed = sorted(itertools.islice(entries, MOST_ENTRIES + 1), key=lambda entry: entry.name)
    except OSError as error:
        if prefix:
            refused[prefix] = f"the directory cannot be read ({error.strerror})"
        return
    for entry in listed:
        name = f"{prefix}/{entry.name}" if prefix else entry.name
        if entry.is_dir(follow_symlinks=False):
            yield None, name
            if depth >= _DEEPEST:
                refused[name] = f"it lies more than {_DEEPEST} directories deep"
            else:
                yield from _walk(root, name, depth + 1, refused)
        else:
            yield entry, name


def _look(root: str, entry: os.DirEntry[str], name: str) -> tuple[str, str, os.stat_result | None]:
    try:
        if len(name.encode()) > _LONGEST_NAME:
            return f"its name is longer than {_LONGEST_NAME} bytes", "", None
    except UnicodeEncodeError:
        return "its name is not UTF-8", "", None
    path = name
    if entry.is_symlink():
        real, base = os.path.realpath(os.path.join(root, name)), os.path.realpath(root)
        if not real.startswith(base + "/"):
            return "it is a link that leads out of the directory", "", None
        path = real[len(base) + 1 :]
    status = os.stat(os.path.join(root, path), follow_symlinks=False)
    if stat.S_ISDIR(status.st_mode):
        return "it is a link to a directory", "", None
    if not stat.S_ISREG(status.st_mode):
        return "it is no regular file", "", None
    return "", path, status
