"""Image layers that depend on nothing but their content. Called by build.assemble."""

import gzip
import hashlib
import io
import tarfile
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import IO, Any

_IN_MEMORY_BYTES = 32 << 20
_COMPRESSION = 6
# /app/artifacts belongs to the crew's user; a layer must neither replace nor fill it.
_ARTIFACTS = "artifacts"


@dataclass(frozen=True)
class LayerFile:
    """Where the file goes in the image (relative to /), its content and whether it may be executed."""

    path: str
    data: bytes
    executable: bool = False


@dataclass(frozen=True)
class Layer:
    """A compressed layer: `size` and `digest` of the blob, `diff_id` of the tar inside it."""

    content: IO[bytes]
    size: int
    digest: str
    diff_id: str


class _Hashing:
    """Counts and hashes what is written through it."""

    def __init__(self, target: Any) -> None:
        self._target, self._hash, self.size = target, hashlib.sha256(), 0

    def write(self, data: bytes) -> int:
        self._hash.update(data)
        self.size += len(data)
        self._target.write(data)
        return len(data)

    def flush(self) -> None:
        self._target.flush()

    @property
    def digest(self) -> str:
        return f"sha256:{self._hash.hexdigest()}"


def make_layer(files: Iterable[LayerFile], outside: tuple[str, ...]) -> Layer:
    """The layer of `files`, which must be sorted by path.

    Directories are written for all parents but those in `outside`, which the
    image below has already and whose owner and mode stay as they are there.
    """
    store: IO[bytes] = tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY_BYTES)  # noqa: SIM115
    blob = _Hashing(store)
    with gzip.GzipFile(filename="", mode="wb", fileobj=blob, compresslevel=_COMPRESSION, mtime=0) as packed:
        plain = _Hashing(packed)
        with tarfile.open(fileobj=plain, mode="w|", format=tarfile.PAX_FORMAT) as archive:  # type: ignore[call-overload]
            known = set(outside)
            for file in files:
                for parent in _parents(file.path):
                    if parent not in known:
                        known.add(parent)
                        archive.addfile(_header(parent, tarfile.DIRTYPE, 0o755))
                header = _header(file.path, tarfile.REGTYPE, 0o755 if file.executable else 0o644)
                header.size = len(file.data)
                archive.addfile(header, io.BytesIO(file.data))
    store.seek(0)
    return Layer(store, blob.size, blob.digest, plain.digest)


def code_files(tree: Mapping[str, bytes], executable: Iterable[str]) -> Iterable[LayerFile]:
    """The tree under /app, in order, read one by one; without what lies in its place of artifacts."""
    marked = frozenset(executable)
    for path in sorted(tree, key=lambda path: f"app/{path}"):
        if path.partition("/")[0] != _ARTIFACTS:
            yield LayerFile(f"app/{path}", tree[path], path in marked)


def left_out(tree: Iterable[str]) -> list[str]:
    """The paths of the tree that do not reach the image."""
    return sorted(path for path in tree if path.partition("/")[0] == _ARTIFACTS)


def _header(path: str, kind: bytes, mode: int) -> tarfile.TarInfo:
    header = tarfile.TarInfo(path)
    header.type, header.mode, header.mtime = kind, mode, 0
    header.uid = header.gid = 0
    header.uname = header.gname = ""
    return header


def _parents(path: str) -> list[str]:
    parts = path.split("/")[:-1]
    return ["/".join(parts[: count + 1]) for count in range(len(parts))]
