"""The source as an archive: what git tracks, as it is in the working tree. Called by the deploy program.

Equal content makes equal bytes: entries are sorted, without times and owners. As
in a build from git, a link becomes a copy of the tracked file it leads to, and
submodules are not taken.
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

from actions.workflow.errors import Failed
from actions.workflow.source.exclude_patterns import Patterns
from actions.workflow.source.git import Entry

LIMITS = {"unpacked_bytes": 1 << 30, "entries": 50_000, "ratio": 100}
_RATIO_GRACE = 1 << 20
_LINK, _SUBMODULE, _PROGRAM = "120000", "160000", "100755"
_HOPS = 8
_LINK_BYTES = 4096
_CHUNK = 1 << 20
_BAD_NAME = re.compile(r"[\x00-\x1f\x7f\\]|(^|/)\.wh\.|^.:")


@dataclass(frozen=True)
class Source:
    """What is packed: path in the archive → file of the working tree and whether it is a program.

    `notes` say what was left out.
    """

    files: Mapping[str, tuple[Path, bool]]
    notes: tuple[str, ...]


@dataclass(frozen=True)
class Packed:
    """A finished archive: its size and SHA-256, and what is in it."""

    size: int
    sha256: str
    entries: int
    unpacked: int


def select(directory: Path, entries: list[Entry], excludes: Patterns) -> Source:
    """Decides what is packed. Raises Failed for a name or a link that a build would refuse."""
    by_path = {entry.path: entry for entry in entries}
    root = directory.resolve()
    parents: dict[Path, bool] = {}
    files: dict[str, tuple[Path, bool]] = {}
    missing, excluded, notes = 0, 0, list[str]()
    for path in sorted(by_path, key=str.encode):
        entry = by_path[path]
        if excludes.leave_out(path):
            excluded += 1
            continue
        if entry.mode == _SUBMODULE:
            notes.append(f"{path} is a submodule: not packed")
            continue
        if _BAD_NAME.search(path) or len(path.encode()) > 4096:
            raise Failed(f"The path {path!r} cannot be deployed; rename it, or leave it out (exclude).")
        target = _followed(root, by_path, entry) if entry.mode == _LINK else entry
        place = root / target.path
        if not _inside(root, place.parent, parents):
            raise Failed(f"{path} is reached through a link out of the checkout; nothing of it is deployed.")
        try:
            mode = place.lstat().st_mode
        except (FileNotFoundError, NotADirectoryError):
            missing += 1
            continue
        if not stat.S_ISREG(mode):
            raise Failed(f"{path} is tracked as a file, but is none in the working tree.")
        files[path] = (place, target.mode == _PROGRAM)
    if missing:
        notes.append(f"{missing} tracked files are not in the working tree: not packed")
    if excluded:
        notes.append(f"{excluded} files left out by the input exclude")
    if not files:
        raise Failed(f"There is nothing to deploy: git tracks no file below {directory} that is left.")
    if len(files) > LIMITS["entries"]:
        raise _too_large("entries", f"{len(files)} files are more than {LIMITS['entries']}")
    return Source(files, tuple(notes))


def pack(source: Source, out: IO[bytes]) -> Packed:
    """Writes the .tar.gz to `out`, which can seek, and leaves it at its beginning. Raises Failed."""
    unpacked = 0
    with (
        gzip.GzipFile(filename="", mode="wb", compresslevel=6, fileobj=out, mtime=0) as zipped,
        tarfile.open(fileobj=zipped, mode="w", format=tarfile.PAX_FORMAT) as tar,
    ):
        for path, (place, program) in source.files.items():
            with place.open("rb") as file:
                info = tarfile.TarInfo(path)
                info.size = os.fstat(file.fileno()).st_size
                info.mode = 0o755 if program else 0o644
                unpacked += info.size
                if unpacked > LIMITS["unpacked_bytes"]:
                    raise _too_large("unpacked_bytes", f"the files have more than {LIMITS['unpacked_bytes']}")
                try:
                    tar.addfile(info, file)
                except OSError as error:
                    raise Failed(f"{path} could not be packed: {error}.") from None
        tar_bytes = tar.offset
    size = out.tell()
    if tar_bytes > size * LIMITS["ratio"] + _RATIO_GRACE:
        raise _too_large("ratio", f"the files have more than {LIMITS['ratio']} times the archive's size")
    out.seek(0)
    digest = hashlib.sha256()
    while chunk := out.read(_CHUNK):
        digest.update(chunk)
    out.seek(0)
    return Packed(size, digest.hexdigest(), len(source.files), unpacked)


def _followed(root: Path, by_path: Mapping[str, Entry], link: Entry) -> Entry:
    """The tracked file that a link leads to, by names alone: nothing outside of the tree is looked at."""
    entry = link
    for _ in range(_HOPS):
        place = root / entry.path
        try:
            # Where links cannot be made, git writes a file with the target in it.
            target = place.readlink().as_posix() if place.is_symlink() else _beginning(place)
        except (OSError, ValueError):
            break
        path = posixpath.normpath(posixpath.join(posixpath.dirname(entry.path), target))
        found = by_path.get(path)
        if target.startswith("/") or found is None or found.mode == _SUBMODULE:
            break
        if found.mode != _LINK:
            return found
        entry = found
    raise Failed(
        f"{link.path} is a symbolic link that leads to no tracked file of the source. "
        "Replace it by a copy of what it points to, or leave it out (exclude)."
    )


def _beginning(place: Path) -> str:
    with place.open("rb") as file:
        return file.read(_LINK_BYTES).decode()


def _inside(root: Path, directory: Path, known: dict[Path, bool]) -> bool:
    """Whether the directory is where its name says, and not behind a link."""
    if directory not in known:
        known[directory] = directory.resolve() == directory
    return known[directory]


def _too_large(limit: str, what: str) -> Failed:
    return Failed(
        f"The source is larger than the limit {limit}: {what}. "
        "Leave out what the crew does not need (input exclude), and fetch data while running.",
        title="ContextTooLarge",
    )
