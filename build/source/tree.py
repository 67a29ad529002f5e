"""The checked source: what of a commit or an archive may become part of an image.

Filled entry by entry by build.source.fetch_git and build.source.archive through TreeBuilder,
which refuses at the first thing that is wrong; nothing is ever unpacked under
its own name. Small trees stay in memory, larger ones in one unnamed file.
"""

import hashlib
import posixpath
import tempfile
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import IO, Protocol

from build.errors import CONTEXT_INVALID, CONTEXT_TOO_LARGE, Refused
from build.settings import Limits
from plan.keys import tree_hash

_IN_MEMORY_BYTES = 64 << 20
_CHUNK = 256 << 10
_PATH_BYTES = 4095
_NAME_BYTES = 255
_DEPTH = 100
_ALL_NAMES_BYTES = 32 << 20


class Readable(Protocol):
    """As much of a stream as reading needs."""

    def read(self, size: int, /) -> bytes:
        """At most `size` bytes, none at the end."""
        ...


@dataclass(frozen=True)
class Entry:
    """One file: where its bytes lie in the store, and what they are."""

    offset: int
    size: int
    sha256: str
    executable: bool


class SourceTree(Mapping[str, bytes]):
    """Relative paths to bytes, sorted; the bytes are read when asked for."""

    def __init__(self, entries: dict[str, Entry], store: IO[bytes]) -> None:
        self._entries = dict(sorted(entries.items()))
        self._store = store
        self.hash = tree_hash((path, entry.executable, entry.sha256) for path, entry in self._entries.items())
        self.bytes = sum(entry.size for entry in self._entries.values())

    def __getitem__(self, path: str) -> bytes:
        entry = self._entries[path]
        self._store.seek(entry.offset)
        return self._store.read(entry.size)

    def __contains__(self, path: object) -> bool:
        return path in self._entries

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def without(self, gone: Collection[str]) -> "SourceTree":
        """The same files but for the paths in `gone`."""
        if not gone:
            return self
        return SourceTree({p: entry for p, entry in self._entries.items() if p not in gone}, self._store)

    def entry(self, path: str) -> Entry:
        """What is known about the file at `path` without reading it. Raises KeyError."""
        return self._entries[path]


class TreeBuilder:
    """Takes files one after the other and holds every limit of a source at each step."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._entries: dict[str, Entry] = {}
        self._directories: set[str] = set()
        self._folded: set[str] = set()
        self._names = 0
        self._seen = 0
        self._size = 0
        self._store: IO[bytes] = tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY_BYTES)  # noqa: SIM115

    def count(self) -> None:
        """One more entry of any kind was met. Raises Refused(ContextTooLarge) past the limit."""
        self._seen += 1
        if self._seen > self._limits.entries:
            raise Refused(
                CONTEXT_TOO_LARGE,
                f"the source has more than {self._limits.entries} entries",
                "Leave out what the crew does not need, for example data and virtual environments.",
            )

    def expect(self, size: int) -> None:
        """Refuses early where `size` more bytes would pass the limit of unpacked bytes."""
        if self._size + size > self._limits.unpacked_bytes:
            raise Refused(
                CONTEXT_TOO_LARGE,
                f"the source unpacks to more than {self._limits.unpacked_bytes} bytes",
                "Leave out what the crew does not need; fetch data while running.",
            )

    def directory(self, name: str) -> None:
        """An explicit directory: only its name matters. Raises Refused(ContextInvalid)."""
        path = checked_path(name)
        if path:
            self._claim_parents(f"{path}/")

    def distinct(self, name: str) -> None:
        """Refuses a name that another one differs from in case only: some systems would see one file."""
        folded = checked_path(name).casefold()
        if folded in self._folded:
            raise Refused(
                CONTEXT_INVALID,
                f"{checked_path(name)} is there twice, or differs from another path in case only",
                "Rename one of the two.",
            )
        self._folded.add(folded)

    def add(self, name: str, stream: Readable, executable: bool) -> str:
        """Takes the file `name` from `stream`; its clean path comes back. Raises Refused."""
        path = checked_path(name)
        if not path:
            raise Refused(
                CONTEXT_INVALID, f"the source has a file without a name ({name!r})", "Pack it again."
            )
        if path in self._entries or path in self._directories:
            raise Refused(
                CONTEXT_INVALID, f"{path} is in the source twice", "Pack the source again, each path once."
            )
        self._claim_parents(path)
        self._name(path)
        digest, offset, size = hashlib.sha256(), self._size, 0
        while chunk := stream.read(_CHUNK):
            self.expect(size + len(chunk))
            self._store.write(chunk)
            digest.update(chunk)
            size += len(chunk)
        self._size += size
        self._entries[path] = Entry(offset, size, digest.hexdigest(), executable)
        return path

    def finish(self) -> SourceTree:
        """The tree as it is now. Raises Refused(ContextInvalid) where it is empty."""
        if not self._entries:
            raise Refused(CONTEXT_INVALID, "the source has no file in it", "Is the source's path right?")
        return SourceTree(self._entries, self._store)

    def _name(self, path: str) -> None:
        self._names += len(path)
        if self._names > _ALL_NAMES_BYTES:
            raise Refused(
                CONTEXT_TOO_LARGE, "the source's paths are too long in sum", "Use shorter names, fewer files."
            )

    def _claim_parents(self, path: str) -> None:
        parent = posixpath.dirname(path)
        while parent and parent not in self._directories:
            if parent in self._entries:
                raise Refused(
                    CONTEXT_INVALID, f"{parent} is both a file and a directory", "Pack the source again."
                )
            self._directories.add(parent)
            self._name(parent)
            if len(self._directories) > self._limits.entries:  # also those that no entry names
                raise Refused(
                    CONTEXT_TOO_LARGE,
                    f"the source has more than {self._limits.entries} directories",
                    "Leave out what the crew does not need.",
                )
            parent = posixpath.dirname(parent)


def checked_path(name: str) -> str:
    """`name` as a clean relative path; empty for the root itself. Raises Refused(ContextInvalid).

    Refused are names that are absolute, climb, or cannot be a file's name on Linux
    or in an image's layer. Backslashes and drive letters are what hostile zips hold.
    """
    shown = name.encode("unicode_escape").decode()[:200]
    if name.startswith("/") or "\\" in name or name[1:2] == ":":
        raise _bad_path(shown, "is absolute or not written with /")
    parts = [part for part in name.split("/") if part not in ("", ".")]
    if ".." in parts:
        raise _bad_path(shown, "leaves the source")
    if any(ord(letter) < 32 or ord(letter) == 127 or 0xD800 <= ord(letter) <= 0xDFFF for letter in name):
        raise _bad_path(shown, "has control characters or is not UTF-8")
    if len(name.encode()) > _PATH_BYTES or any(len(part.encode()) > _NAME_BYTES for part in parts):
        raise _bad_path(shown, "is too long")
    if len(parts) > _DEPTH:
        raise _bad_path(shown, f"has more than {_DEPTH} levels")
    if any(part.startswith(".wh.") for part in parts):
        raise _bad_path(shown, "has a name that image layers keep for removals")
    return "/".join(parts)


def _bad_path(shown: str, problem: str) -> Refused:
    return Refused(
        CONTEXT_INVALID, f"the path {shown!r} {problem}", "Rename it, or leave it out of the source."
    )
