"""Walks the files of the crew, which may change at any time. Used by `disk_usage`."""

from __future__ import annotations

import os
import stat

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

INODE_BYTES = 512  # charged per entry besides its blocks, so empty files are not free
_MAX_PENDING_DIRECTORIES = 200_000  # directories waiting to be read; further ones are skipped
_MAX_ANCHORS = 64  # open descriptors to reach beyond PATH_MAX, each some 900 characters deeper
_MAX_PATH_CHARS = 900  # four times as many bytes are still below PATH_MAX
_MAX_OPEN_FILES = 20_000
_LARGE_FILE_BYTES = 1 << 20  # from this size on, a file renamed during the walk is recognised by its inode


def changed_entries(
    root: str, since: float, uid: int, large: set[tuple[int, int]] | None = None
) -> Iterator[tuple[str, int]]:
    """Yield (part, bytes) of each entry below `root` that changed after `since` (epoch seconds).

    Files of the image are older, and the crew cannot set back ctime. `part` is the top-level directory below
    the root that contains the entry. Bytes are the allocated blocks, divided among the hard links for small
    files; `large` has the inodes of large files counted before, below any root. Skips directories that `uid`
    cannot write to. Follows no symbolic links.
    """
    large = set() if large is None else large
    anchors: list[int] = []
    pending: list[tuple[int, str, str]] = [(-1, root, root)]
    try:
        while pending:
            anchor, path, part = pending.pop()
            try:
                flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
                directory = os.open(path, flags, dir_fd=anchor if anchor >= 0 else None)
            except OSError:
                continue  # removed meanwhile, or not readable
            try:
                for name, status in _entries(directory):
                    own_part = f"{root}/{name}" if path == root and anchor < 0 else part
                    is_directory = stat.S_ISDIR(status.st_mode)
                    if status.st_ctime >= since:
                        yield own_part if is_directory else part, _share(status, large) + INODE_BYTES
                    if not is_directory or len(pending) >= _MAX_PENDING_DIRECTORIES:
                        continue
                    if status.st_uid != uid and not status.st_mode & 0o022:
                        continue
                    if len(path) + len(name) < _MAX_PATH_CHARS:
                        pending.append((anchor, f"{path}/{name}", own_part))
                    elif len(anchors) < _MAX_ANCHORS:
                        anchors.append(os.dup(directory))
                        pending.append((anchors[-1], name, own_part))
            finally:
                os.close(directory)
    finally:
        for anchor in anchors:
            os.close(anchor)


def _share(status: os.stat_result, large: set[tuple[int, int]]) -> int:
    """Return the bytes to charge for one name of an inode; all of a large file for its first name."""
    size = status.st_blocks * 512
    if stat.S_ISDIR(status.st_mode):
        return size
    if size < _LARGE_FILE_BYTES:
        return size // max(1, status.st_nlink)
    inode = (status.st_dev, status.st_ino)
    if inode in large:
        return 0
    large.add(inode)
    return size


def deleted_open_files(devices: set[int]) -> Iterator[tuple[str, int]]:
    """Yield (part, bytes) of each deleted file on `devices` that another process holds open."""
    counted: set[tuple[int, int]] = set()
    for process in os.listdir("/proc"):
        if not process.isdigit() or int(process) == os.getpid():
            continue
        directory = f"/proc/{process}/fd"
        try:
            numbers = os.listdir(directory)
        except OSError:
            continue
        for number in numbers[:_MAX_OPEN_FILES]:
            try:
                status = os.stat(f"{directory}/{number}")
            except OSError:
                continue
            inode = (status.st_dev, status.st_ino)
            if status.st_nlink or status.st_dev not in devices or not stat.S_ISREG(status.st_mode):
                continue
            if inode not in counted:
                counted.add(inode)
                yield "deleted files that are still open", status.st_blocks * 512


def _entries(directory: int) -> Iterator[tuple[str, os.stat_result]]:
    try:
        with os.scandir(directory) as entries:
            for entry in entries:
                try:
                    yield entry.name, entry.stat(follow_symlinks=False)
                except OSError:
                    continue
    except OSError:
        return
