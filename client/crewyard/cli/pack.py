"""The archive that is uploaded: equal content makes equal bytes. Called by `deploy`."""

import gzip
import hashlib
import os
import stat
import tarfile
from collections.abc import Collection
from dataclasses import dataclass
from typing import IO, BinaryIO

from crewyard.cli.output import size as readable
from crewyard.cli.source_tree import Tree
from crewyard.errors import CrewyardError

MOST_UNPACKED = 1 << 30
_CHUNK = 1 << 20
_WITHOUT_WAITING = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)


@dataclass(frozen=True)
class Packed:
    """A finished archive: bytes, SHA-256 in hexadecimal, and how many files are in it."""

    size: int
    sha256: str
    files: int


def pack(tree: Tree, left_out: Collection[str], out: IO[bytes]) -> Packed:
    """Writes the .tar.gz to `out`, which can seek, and leaves it at its beginning. Raises CrewyardError."""
    unpacked, count = 0, 0
    with (
        gzip.GzipFile(filename="", mode="wb", compresslevel=6, fileobj=out, mtime=0) as zipped,
        tarfile.open(fileobj=zipped, mode="w", format=tarfile.PAX_FORMAT) as tar,
    ):
        for path in tree:
            if path in left_out:
                continue
            with _opened(tree, path) as file:
                info, found = tarfile.TarInfo(path), os.fstat(file.fileno())
                info.size = found.st_size
                info.mode = 0o755 if found.st_mode & stat.S_IXUSR else 0o644
                unpacked += info.size
                if unpacked > MOST_UNPACKED:
                    raise CrewyardError(
                        f"the source has more than {readable(MOST_UNPACKED)}; leave out what the crew "
                        "does not need ([build] exclude in crew.toml)"
                    )
                try:
                    tar.addfile(info, file)
                except OSError as error:
                    raise CrewyardError(f"{path} changed while it was packed ({error}); try again") from None
            count += 1
    size = out.tell()
    out.seek(0)
    digest = hashlib.sha256()
    while chunk := out.read(_CHUNK):
        digest.update(chunk)
    out.seek(0)
    return Packed(size, digest.hexdigest(), count)


def _opened(tree: Tree, path: str) -> BinaryIO:
    """A file of the tree; one that became a pipe meanwhile makes nobody wait. Raises CrewyardError."""
    try:
        file = os.fdopen(os.open(tree.place(path), os.O_RDONLY | _WITHOUT_WAITING), "rb")
    except OSError as error:
        raise CrewyardError(
            f"{path} cannot be read ({error.strerror}); leave it out with exclude in crew.toml"
        ) from None
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise CrewyardError(f"{path} changed while it was packed; try again")
    return file
