"""The source archive: tracked files with their content in the working tree. Called by the action `deploy`.

Reproducible: equal content gives equal bytes, with sorted entries, no times and no owners. As in a build from
git, a symbolic link becomes a copy of the tracked file that it points to; a submodule has its files if it is
checked out.
"""

import gzip
import hashlib
import os
import posixpath
import re
import stat
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from actions.workflow.errors import StepFailed
from actions.workflow.source.exclude_patterns import ExcludePatterns
from actions.workflow.source.git import SUBMODULE, TrackedFile

LIMITS = {"unpacked_bytes": 1 << 30, "entries": 50_000, "ratio": 100}
_RATIO_GRACE = 1 << 20
_LINK, _PROGRAM = "120000", "100755"
_MAX_LINK_HOPS = 8
_MAX_LINK_BYTES = 4096
_CHUNK = 1 << 20
_BAD_NAME = re.compile(r"[\x00-\x1f\x7f\\]|(^|/)\.wh\.|^.:")


@dataclass(frozen=True)
class SourceFiles:
    """The files to pack: path in the archive → file of the working tree, and whether it is executable.

    `notes` report what was omitted.
    """

    files: Mapping[str, tuple[Path, bool]]
    notes: tuple[str, ...]


@dataclass(frozen=True)
class PackedSource:
    """A finished archive: size and SHA-256, number of entries, unpacked bytes."""

    size: int
    sha256: str
    entries: int
    unpacked: int


def select(directory: Path, entries: list[TrackedFile], excludes: ExcludePatterns) -> SourceFiles:
    """Select the files to pack. Raises StepFailed for a name or a link that a build would reject."""
    by_path = {entry.path: entry for entry in entries}
    root = directory.resolve()
    parents: dict[Path, bool] = {}
    files: dict[str, tuple[Path, bool]] = {}
    missing, excluded, notes = 0, 0, list[str]()
    for path in sorted(by_path, key=str.encode):
        entry = by_path[path]
        if excludes.excludes(path):
            excluded += 1
            continue
        if entry.mode == SUBMODULE:
            notes.append(f"{path} is a submodule that is not checked out: not packed")
            continue
        if _BAD_NAME.search(path) or len(path.encode()) > 4096:
            raise StepFailed(f"The path {path!r} cannot be deployed; rename it, or exclude it.")
        target = _resolve_link(root, by_path, entry) if entry.mode == _LINK else entry
        file_path = root / target.path
        if not _inside(root, file_path.parent, parents):
            raise StepFailed(f"{path} leads through a link out of the checkout and cannot be deployed.")
        try:
            mode = file_path.lstat().st_mode
        except (FileNotFoundError, NotADirectoryError):
            missing += 1
            continue
        if not stat.S_ISREG(mode):
            raise StepFailed(f"{path} is tracked as a file, but is not a file in the working tree.")
        files[path] = (file_path, target.mode == _PROGRAM)
    if missing:
        notes.append(f"{missing} tracked files are not in the working tree: not packed")
    if excluded:
        notes.append(f"{excluded} files excluded by the input exclude")
    if not files:
        raise StepFailed(f"There is nothing to deploy: no tracked files below {directory} remain.")
    if len(files) > LIMITS["entries"]:
        raise _too_large("entries", f"{len(files)} files are more than {LIMITS['entries']}")
    return SourceFiles(files, tuple(notes))


def pack(source: SourceFiles, out: IO[bytes]) -> PackedSource:
    """Write the .tar.gz to the seekable `out` and rewind it. Raises StepFailed."""
    unpacked = 0
    with (
        gzip.GzipFile(filename="", mode="wb", compresslevel=6, fileobj=out, mtime=0) as zipped,
        tarfile.open(fileobj=zipped, mode="w", format=tarfile.PAX_FORMAT) as tar,
    ):
        for path, (file_path, program) in source.files.items():
            with file_path.open("rb") as file:
                info = tarfile.TarInfo(path)
                info.size = os.fstat(file.fileno()).st_size
                info.mode = 0o755 if program else 0o644
                unpacked += info.size
                if unpacked > LIMITS["unpacked_bytes"]:
                    raise _too_large("unpacked_bytes", f"the files have more than {LIMITS['unpacked_bytes']}")
                try:
                    tar.addfile(info, file)
                except OSError as error:
                    raise StepFailed(f"{path} could not be packed: {error}.") from None
        tar_bytes = tar.offset
    size = out.tell()
    if tar_bytes > size * LIMITS["ratio"] + _RATIO_GRACE:
        raise _too_large("ratio", f"the files have more than {LIMITS['ratio']} times the archive's size")
    out.seek(0)
    digest = hashlib.sha256()
    while chunk := out.read(_CHUNK):
        digest.update(chunk)
    out.seek(0)
    return PackedSource(size, digest.hexdigest(), len(source.files), unpacked)


def _resolve_link(root: Path, by_path: Mapping[str, TrackedFile], link: TrackedFile) -> TrackedFile:
    """Return the tracked file that a link points to, by names only; never reads outside the tree."""
    entry = link
    for _ in range(_MAX_LINK_HOPS):
        file_path = root / entry.path
        try:
            # Where links are not supported, git writes a file that contains the target.
            target = file_path.readlink().as_posix() if file_path.is_symlink() else _read_target(file_path)
        except (OSError, ValueError):
            break
        path = posixpath.normpath(posixpath.join(posixpath.dirname(entry.path), target))
        entry_at_target = by_path.get(path)
        if target.startswith("/") or entry_at_target is None or entry_at_target.mode == SUBMODULE:
            break
        if entry_at_target.mode != _LINK:
            return entry_at_target
        entry = entry_at_target
    raise StepFailed(
        f"{link.path} is a symbolic link that does not lead to a tracked file of the source. "
        "Replace it with a copy of its target, or exclude it."
    )


def _read_target(file_path: Path) -> str:
    with file_path.open("rb") as file:
        return file.read(_MAX_LINK_BYTES).decode()


def _inside(root: Path, directory: Path, cache: dict[Path, bool]) -> bool:
    """Return whether no part of the directory's path is a link; caches results in `known`."""
    if directory not in cache:
        cache[directory] = directory.resolve() == directory
    return cache[directory]


def _too_large(limit: str, reason: str) -> StepFailed:
    return StepFailed(
        f"The source is larger than the limit {limit}: {reason}. "
        "Exclude files that the crew does not need (input exclude), and fetch data at run time.",
        title="ContextTooLarge",
    )
