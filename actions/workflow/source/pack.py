"""The source archive: tracked files with their content in the working tree. Called by the action `deploy`.

Reproducible: equal content gives equal bytes, with sorted entries, no times and no owners. As in a build from
git, a symbolic link becomes a copy of the tracked file or directory that it points to, or is left out; a
submodule has its files if it is checked out.
"""

import bisect
import gzip
import hashlib
import itertools
import os
import posixpath
import re
import stat
import tarfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from actions.workflow.errors import StepFailed
from actions.workflow.source.configured_exclude import CONFIGURATION_FILES
from actions.workflow.source.exclude_patterns import NO_PATTERNS, ExcludePatterns
from actions.workflow.source.git import SUBMODULE, TrackedFile

LIMITS = {"unpacked_bytes": 64 << 30, "entries": 1_000_000}
"""The greatest that an installation can have; the build refuses more than its own."""
_LINK, _PROGRAM = "120000", "100755"
_MAX_LINKS = 8
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


def select(
    directory: Path,
    entries: list[TrackedFile],
    excludes: ExcludePatterns,
    configured: ExcludePatterns = NO_PATTERNS,
) -> SourceFiles:
    """Select the files to pack. Raises StepFailed for a name that a build would reject.

    `excludes` are the patterns of the input, `configured` those of the configuration, which stays itself.
    """
    by_path = {entry.path: entry for entry in entries}
    root = directory.resolve()
    parents: dict[Path, bool] = {}
    files: dict[str, tuple[Path, bool]] = {}
    missing, excluded, left_out, notes = 0, 0, 0, list[str]()
    ordered = sorted(by_path)
    pending = [(path, by_path[path], 0) for path in reversed(ordered)]
    # Linked directories may have more links that are left out than files.
    while pending and len(files) + len(notes) <= LIMITS["entries"]:
        path, entry, links = pending.pop()
        if excludes.excludes(path):
            excluded += 1
            continue
        if path not in CONFIGURATION_FILES and configured.excludes(path):
            left_out += 1
            continue
        if entry.mode == SUBMODULE:
            notes.append(f"{path} is a submodule that is not checked out: not packed")
            continue
        if _BAD_NAME.search(path) or len(path.encode()) > 4096:
            raise StepFailed(f"The path {path!r} cannot be deployed; rename it, or exclude it.")
        if entry.mode == _LINK:
            targets = _link_targets(root, by_path, ordered, entry) if links < _MAX_LINKS else {}
            pending += [(path + below, targets[below], links + 1) for below in reversed(targets)]
            if not targets:
                notes.append(
                    f"{path} is a symbolic link to no tracked file or directory of the source: not packed"
                )
            continue
        file_path = root / entry.path
        if not _inside(root, file_path.parent, parents):
            raise StepFailed(f"{path} leads through a link out of the checkout and cannot be deployed.")
        try:
            mode = file_path.lstat().st_mode
        except (FileNotFoundError, NotADirectoryError):
            missing += 1
            continue
        if not stat.S_ISREG(mode):
            raise StepFailed(f"{path} is tracked as a file, but is not a file in the working tree.")
        files[path] = (file_path, entry.mode == _PROGRAM)
    if pending or len(files) > LIMITS["entries"]:
        raise _too_large("entries", f"there are more than {LIMITS['entries']} files")
    if missing:
        notes.append(f"{missing} tracked files are not in the working tree: not packed")
    if excluded:
        notes.append(f"{excluded} files excluded by the input exclude")
    if left_out:
        notes.append(f"{left_out} files excluded by the configuration")
    if not files:
        raise StepFailed(f"There is nothing to deploy: no tracked files below {directory} remain.")
    return SourceFiles(dict(sorted(files.items())), tuple(notes))


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
    size = out.tell()
    out.seek(0)
    digest = hashlib.sha256()
    while chunk := out.read(_CHUNK):
        digest.update(chunk)
    out.seek(0)
    return PackedSource(size, digest.hexdigest(), len(source.files), unpacked)


def _link_targets(
    root: Path, by_path: Mapping[str, TrackedFile], ordered: Sequence[str], link: TrackedFile
) -> dict[str, TrackedFile]:
    """Return the tracked file that a link points to, under "", or those of a directory by the path below it.

    Decides by names only; never reads outside the tree.
    """
    file_path = root / link.path
    try:
        # Where links are not supported, git writes a file that contains the target.
        text = file_path.readlink().as_posix() if file_path.is_symlink() else _read_target(file_path)
    except (OSError, ValueError):
        return {}
    target = posixpath.normpath(posixpath.join(posixpath.dirname(link.path), text))
    if text.startswith("/") or f"{link.path}/".startswith(f"{target}/"):
        return {}
    if target in by_path:
        return {"": by_path[target]}
    rest = itertools.islice(ordered, bisect.bisect_left(ordered, f"{target}/"), None)
    inside = itertools.takewhile(lambda path: path.startswith(f"{target}/"), rest)
    return {path.removeprefix(target): by_path[path] for path in inside}


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
