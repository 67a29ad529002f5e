"""The uploaded archive; reproducible: equal content gives equal bytes. Called by `deploy`."""

import gzip
import hashlib
import os
import stat
import tarfile
from collections.abc import Collection
from dataclasses import dataclass
from typing import IO, BinaryIO

from crewyard.cli.output import size as readable
from crewyard.cli.source_tree import SourceTree
from crewyard.errors import LocalFileError
from crewyard.plan.source import path_problem

MAX_UNPACKED_BYTES = 64 << 30
"""The greatest limit `unpacked_bytes` that an installation can have; the build refuses more than its own."""
_CHUNK = 1 << 20
_OPEN_FLAGS = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)


@dataclass(frozen=True)
class PackedArchive:
    """A finished archive: size in bytes, SHA-256 in hexadecimal, number of files."""

    size: int
    sha256: str
    files: int


def pack(tree: SourceTree, excluded: Collection[str], out: IO[bytes]) -> PackedArchive:
    """Write the .tar.gz to the seekable `out` and rewind it. Raises LocalFileError."""
    unpacked, count = 0, 0
    with (
        gzip.GzipFile(filename="", mode="wb", compresslevel=6, fileobj=out, mtime=0) as zipped,
        tarfile.open(fileobj=zipped, mode="w", format=tarfile.PAX_FORMAT) as tar,
    ):
        for path in tree:
            if path in excluded:
                continue
            if (problem := path_problem(path)) is not None:
                raise LocalFileError(f"the path {path!r} {problem}; rename it, or exclude it in crew.toml")
            with _open(tree, path) as file:
                info, status = tarfile.TarInfo(path), os.fstat(file.fileno())
                info.size = status.st_size
                info.mode = 0o755 if status.st_mode & stat.S_IXUSR else 0o644
                unpacked += info.size
                if unpacked > MAX_UNPACKED_BYTES:
                    raise LocalFileError(
                        f"the source has more than {readable(MAX_UNPACKED_BYTES)}; exclude files that the "
                        "crew does not need ([build] exclude in crew.toml)"
                    )
                try:
                    tar.addfile(info, file)
                except OSError as error:
                    raise LocalFileError(f"{path} changed while it was packed ({error}); try again") from None
            count += 1
    size = out.tell()
    out.seek(0)
    digest = hashlib.sha256()
    while chunk := out.read(_CHUNK):
        digest.update(chunk)
    out.seek(0)
    return PackedArchive(size, digest.hexdigest(), count)


def _open(tree: SourceTree, path: str) -> BinaryIO:
    """Open a file of the tree without blocking if it has become a pipe. Raises LocalFileError."""
    try:
        file = os.fdopen(os.open(tree.file_path(path), os.O_RDONLY | _OPEN_FLAGS), "rb")
    except OSError as error:
        raise LocalFileError(f"{path} cannot be read ({error.strerror}); exclude it in crew.toml") from None
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise LocalFileError(f"{path} changed while it was packed; try again")
    return file
