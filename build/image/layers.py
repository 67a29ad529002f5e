"""Reproducible image layers, a function of their content only. Called by build.assemble."""

import gzip
import hashlib
import io
import tarfile
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import IO, Any

from plan.packages.dockerfile import CREW_ID

_IN_MEMORY_BYTES = 32 << 20
_GZIP_LEVEL = 6
# /app/artifacts belongs to the crew's user; a layer must neither replace it nor add files.
_ARTIFACTS = "artifacts"


@dataclass(frozen=True)
class LayerFile:
    """A file of a layer: path relative to /, content, executable bit, owner (user and group)."""

    path: str
    data: bytes
    executable: bool = False
    owner: int = 0


@dataclass(frozen=True)
class ImageLayer:
    """A compressed layer: `size` and `digest` of the blob, `diff_id` of the tar inside it."""

    content: IO[bytes]
    size: int
    digest: str
    diff_id: str


class HashingWriter:
    """Writer that counts and hashes the bytes."""

    def __init__(self, target: Any) -> None:
        self._target, self._hash, self.size = target, hashlib.sha256(), 0

    def write(self, data: bytes) -> int:
        """Write to the target."""
        self._hash.update(data)
        self.size += len(data)
        self._target.write(data)
        return len(data)

    def flush(self) -> None:
        """Flush the target."""
        self._target.flush()

    @property
    def digest(self) -> str:
        """The SHA-256 of the bytes so far (`sha256:…`)."""
        return f"sha256:{self._hash.hexdigest()}"


def make_layer(files: Iterable[LayerFile], existing_directories: tuple[str, ...]) -> ImageLayer:
    """Return the layer of `files`, which must be sorted by path.

    Adds all parent directories except `existing_directories`, which the image below has; their owner and mode
    remain unchanged. The others belong to the owner of their first file.
    """
    store: IO[bytes] = tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY_BYTES)  # noqa: SIM115
    blob = HashingWriter(store)
    with gzip.GzipFile(filename="", mode="wb", fileobj=blob, compresslevel=_GZIP_LEVEL, mtime=0) as packed:
        tar_stream = HashingWriter(packed)
        with tarfile.open(fileobj=tar_stream, mode="w|", format=tarfile.PAX_FORMAT) as archive:  # type: ignore[call-overload]
            written = set(existing_directories)
            for file in files:
                for parent in _parents(file.path):
                    if parent not in written:
                        written.add(parent)
                        archive.addfile(_header(parent, tarfile.DIRTYPE, 0o755, file.owner))
                mode = 0o755 if file.executable else 0o644
                header = _header(file.path, tarfile.REGTYPE, mode, file.owner)
                header.size = len(file.data)
                archive.addfile(header, io.BytesIO(file.data))
    store.seek(0)
    return ImageLayer(store, blob.size, blob.digest, tar_stream.digest)


def code_files(tree: Mapping[str, bytes], executable: Iterable[str]) -> Iterable[LayerFile]:
    """Yield the tree's files below /app in order, read one by one, without the directory artifacts.

    They belong to the crew's user: a crew may write what its repository holds, such as a committed report.
    """
    executables = frozenset(executable)
    for path in sorted(tree, key=lambda path: f"app/{path}"):
        if path.partition("/")[0] != _ARTIFACTS:
            yield LayerFile(f"app/{path}", tree[path], path in executables, CREW_ID)


def excluded_files(tree: Iterable[str]) -> list[str]:
    """Return the paths of the tree that the image does not contain."""
    return sorted(path for path in tree if path.partition("/")[0] == _ARTIFACTS)


def _header(path: str, kind: bytes, mode: int, owner: int) -> tarfile.TarInfo:
    header = tarfile.TarInfo(path)
    header.type, header.mode, header.mtime = kind, mode, 0
    header.uid = header.gid = owner
    header.uname = header.gname = ""
    return header


def _parents(path: str) -> list[str]:
    parts = path.split("/")[:-1]
    return ["/".join(parts[: count + 1]) for count in range(len(parts))]
