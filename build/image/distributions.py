"""Installed Python distributions and Debian packages of an image, from its layers.

The layers are untrusted: nothing is extracted, and bytes, time and results are bounded. Called by
`controller.attestation.child`, in a process of its own.
"""

import gzip
import re
import time
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import IO

import zstandard
from packaging.utils import canonicalize_name

from build.image import debian_packages
from build.image.debian_packages import DebianPackage
from build.source.tar import TarInvalid, TarMember, members
from build.source.tree import Readable

MAX_LAYER_BYTES = 16 << 30
"""Unpacked bytes of a layer."""
MAX_NAMES = 10_000
"""Distributions of a layer, its whiteouts, and its Debian packages."""
_MAX_PATH_LENGTH = 512
_MAX_WINDOW_BYTES = 32 << 20
_GZIP, _ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
_METADATA = re.compile(r"(?:\.dist-info/METADATA|\.egg-info/PKG-INFO|\.egg-info)$")
_WHITEOUT, _OPAQUE = ".wh.", ".wh..wh..opq"


@dataclass(frozen=True)
class LayerContent:
    """Paths of the metadata of distributions that a layer adds, and paths that it removes from lower layers.

    `complete` if the whole layer could be read. A removed path that ends with `/` removes what is below it.
    `databases` has the entries of the files that list Debian packages, by path.
    """

    added: tuple[str, ...]
    removed: tuple[str, ...]
    complete: bool
    databases: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class Distribution:
    """An installed distribution; `path` is that of its metadata, `version` empty where the path has none."""

    name: str
    version: str
    path: str

    @property
    def normalized(self) -> str:
        """The name as package indexes compare it."""
        return str(canonicalize_name(self.name))


def read_layer(content: IO[bytes], deadline: float, max_bytes: int = MAX_LAYER_BYTES) -> LayerContent:
    """Read a compressed layer until its end, or until `deadline` (monotonic). Raises OSError of `content`."""
    added: set[str] = set()
    removed: set[str] = set()
    databases: dict[str, tuple[str, ...]] = {}
    packages, complete = 0, False
    reader = _unpacked(content, deadline, max_bytes)
    try:
        for member in members(reader):
            path = _normal(member.name)
            folder, slash, name = path.rpartition("/")
            if name == _OPAQUE:
                removed.add(f"{folder}{slash}")
            elif name.startswith(_WHITEOUT):
                removed.add(f"{folder}{slash}{name.removeprefix(_WHITEOUT)}")
            elif member.kind == "file" and _METADATA.search(path) and len(path) <= _MAX_PATH_LENGTH:
                added.add(re.sub(r"/(METADATA|PKG-INFO)$", "", path))
            elif member.kind == "file" and debian_packages.is_database(path):
                databases[path] = debian_packages.entries(path, _text(member))[:MAX_NAMES]
                packages += len(databases[path])
            if max(len(added), len(removed), packages) > MAX_NAMES:
                break
        else:
            complete = reader.at_end_marker
    except (TarInvalid, _LayerTooLarge, zlib.error, gzip.BadGzipFile, EOFError, zstandard.ZstdError):
        complete = False
    return LayerContent(
        tuple(sorted(added)[:MAX_NAMES]), tuple(sorted(removed)[:MAX_NAMES]), complete, databases
    )


def installed(layers: Iterable[LayerContent]) -> tuple[list[Distribution], list[DebianPackage]]:
    """Return the distributions and the Debian packages of an image from its layers, lowest first."""
    files: dict[str, tuple[str, ...]] = {}
    for layer in layers:
        whole = {path for path in layer.removed if not path.endswith("/")}
        below = tuple(path if path.endswith("/") else f"{path}/" for path in layer.removed)
        kept = {path for path in files if path not in whole and not path.startswith(below)}
        files = {path: files[path] for path in kept} | dict.fromkeys(layer.added, ()) | dict(layer.databases)
    databases = {path: entries for path, entries in files.items() if debian_packages.is_database(path)}
    distributions = [_distribution(path) for path in sorted(files.keys() - databases.keys())]
    return distributions, debian_packages.packages(databases)


class _LayerTooLarge(Exception):
    """The layer has more bytes than are read, or takes longer."""


class _BoundedReader:
    def __init__(self, stream: Readable, deadline: float, max_bytes: int) -> None:
        self._stream, self._deadline, self._bytes_left = stream, deadline, max_bytes
        self._last = b""

    @property
    def at_end_marker(self) -> bool:
        """Whether the last bytes were zeros, as at the end of a tar that is not truncated."""
        return bool(self._last) and not self._last.strip(b"\0")

    def read(self, size: int, /) -> bytes:
        data = self._stream.read(size)
        self._last = data
        self._bytes_left -= len(data)
        if self._bytes_left < 0 or time.monotonic() > self._deadline:
            raise _LayerTooLarge
        return data


class _Prefixed:
    """A stream whose first bytes were already read."""

    def __init__(self, first: bytes, rest: IO[bytes]) -> None:
        self._first, self._rest = first, rest

    def read(self, size: int = -1, /) -> bytes:
        if self._first:
            cut = len(self._first) if size < 0 else size
            data, self._first = self._first[:cut], self._first[cut:]
            return data
        return self._rest.read(size)


def _unpacked(content: IO[bytes], deadline: float, max_bytes: int) -> _BoundedReader:
    first = content.read(4)
    packed = _Prefixed(first, content)
    stream: Readable = packed
    if first.startswith(_ZSTD):
        decompressor = zstandard.ZstdDecompressor(max_window_size=_MAX_WINDOW_BYTES)
        stream = decompressor.stream_reader(packed, read_across_frames=True)  # type: ignore[arg-type]
    elif first.startswith(_GZIP):
        stream = gzip.GzipFile(fileobj=packed, mode="rb")  # type: ignore[call-overload]
    return _BoundedReader(stream, deadline, max_bytes)


def _text(member: TarMember) -> str:
    """Return the text of a file. Raises _LayerTooLarge."""
    if member.size > debian_packages.MAX_DATABASE_BYTES:
        raise _LayerTooLarge
    data = bytearray()
    while chunk := member.content.read(64 << 10):
        data += chunk
    return data.decode("utf-8", "replace")


def _normal(name: str) -> str:
    """Return a member's path without `./`, with bytes that are not UTF-8 replaced."""
    return name.encode("utf-8", "replace").decode().removeprefix("./").strip("/")


def _distribution(path: str) -> Distribution:
    stem = path.rpartition("/")[2].rpartition(".")[0]
    name, _, rest = stem.partition("-")
    return Distribution(name, rest.partition("-")[0], path)
