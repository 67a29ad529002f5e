"""What the crew has on its disk, entry by entry. Used by `storage`; the crew may change it at any moment."""

from __future__ import annotations

import os
import stat

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

INODE = 512  # bytes that an entry takes besides its blocks, so that empty files are not free
_PENDING = 200_000  # directories found and not yet looked into; more are left out
_ANCHORS = 64  # descriptors held to get beyond the longest path, some 900 characters further each
_LONG = 900  # characters of a path; four times as many bytes are still below PATH_MAX
_OPEN_FILES = 20_000
_LARGE = 1 << 20  # bytes of a file that is known again where it is renamed meanwhile


def written(
    root: str, since: float, uid: int, large: set[tuple[int, int]] | None = None
) -> Iterator[tuple[str, int]]:
    """(part, bytes) of each entry below `root` that changed after `since` (epoch seconds).

    What the image brought is older, and the time of the last status change cannot be set back. `part` is the
    directory directly below the root that it lies in. Bytes are the allocated blocks, of small files divided
    among the hard links; `large` are the others seen before, below any root. Directories that `uid` cannot
    write to are not looked into. Follows no symbolic link.
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
                continue  # gone meanwhile, or closed to its owner
            try:
                for name, status in _entries(directory):
                    own = f"{root}/{name}" if path == root and anchor < 0 else part
                    below = stat.S_ISDIR(status.st_mode)
                    if status.st_ctime >= since:
                        yield own if below else part, _share(status, large) + INODE
                    if not below or len(pending) >= _PENDING:
                        continue
                    if status.st_uid != uid and not status.st_mode & 0o022:
                        continue
                    if len(path) + len(name) < _LONG:
                        pending.append((anchor, f"{path}/{name}", own))
                    elif len(anchors) < _ANCHORS:
                        anchors.append(os.dup(directory))
                        pending.append((anchors[-1], name, own))
            finally:
                os.close(directory)
    finally:
        for anchor in anchors:
            os.close(anchor)


def _share(status: os.stat_result, large: set[tuple[int, int]]) -> int:
    """The bytes of one of an inode's names; a large one has all of them under the first that is seen."""
    size = status.st_blocks * 512
    if stat.S_ISDIR(status.st_mode):
        return size
    if size < _LARGE:
        return size // max(1, status.st_nlink)
    one = (status.st_dev, status.st_ino)
    if one in large:
        return 0
    large.add(one)
    return size


def deleted(devices: set[int]) -> Iterator[tuple[str, int]]:
    """(part, bytes) of each file on `devices` without a name that another process holds open."""
    seen: set[tuple[int, int]] = set()
    for process in os.listdir("/proc"):
        if not process.isdigit() or int(process) == os.getpid():
            continue
        directory = f"/proc/{process}/fd"
        try:
            numbers = os.listdir(directory)
        except OSError:
            continue
        for number in numbers[:_OPEN_FILES]:
            try:
                status = os.stat(f"{directory}/{number}")
            except OSError:
                continue
            one = (status.st_dev, status.st_ino)
            if status.st_nlink or status.st_dev not in devices or not stat.S_ISREG(status.st_mode):
                continue
            if one not in seen:
                seen.add(one)
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
