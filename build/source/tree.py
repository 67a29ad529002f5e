"""The checked source tree: files of a commit or an archive that may become part of an image.

build.source.git_tree and build.source.archive add entries through TreeBuilder, which refuses the first
invalid one. Nothing is unpacked under its own name. Small trees stay in memory, larger ones in one unnamed
file.
"""

import hashlib
import posixpath
import tempfile
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import IO, Protocol

from build.errors import CONTEXT_INVALID, CONTEXT_TOO_LARGE, BuildRefused
from build.settings import SourceLimits
from egress.git.repository_url import printable
from plan.keys import tree_hash
from plan.source import PATH_HINT, path_problem

_IN_MEMORY_BYTES = 64 << 20
_CHUNK_BYTES = 256 << 10
_MAX_TOTAL_NAME_BYTES = 32 << 20


class Readable(Protocol):
    """A readable stream."""

    def read(self, size: int, /) -> bytes:
        """Return at most `size` bytes, none at the end."""
        ...


@dataclass(frozen=True)
class TreeEntry:
    """One file: the location of its bytes in the store, and their hash."""

    offset: int
    size: int
    sha256: str
    executable: bool


class CheckedSourceTree(Mapping[str, bytes]):
    """Sorted mapping from relative paths to bytes, which are read on access."""

    def __init__(self, entries: dict[str, TreeEntry], store: IO[bytes]) -> None:
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

    def without(self, excluded: Collection[str]) -> "CheckedSourceTree":
        """Return the tree without the paths in `excluded`."""
        if not excluded:
            return self
        return CheckedSourceTree(
            {p: entry for p, entry in self._entries.items() if p not in excluded}, self._store
        )

    def only(self, paths: Collection[str]) -> "CheckedSourceTree":
        """Return the tree of the files in `paths`."""
        return CheckedSourceTree({path: self._entries[path] for path in paths}, self._store)

    def below(self, directory: str) -> "CheckedSourceTree":
        """Return the tree of the files below `directory`."""
        prefix = f"{directory}/"
        entries = {p.removeprefix(prefix): e for p, e in self._entries.items() if p.startswith(prefix)}
        return CheckedSourceTree(entries, self._store)

    def entry(self, path: str) -> TreeEntry:
        """Return the metadata of the file at `path`. Raises KeyError."""
        return self._entries[path]


class TreeBuilder:
    """Builder of a CheckedSourceTree that enforces all limits at each step."""

    def __init__(self, limits: SourceLimits) -> None:
        self._limits = limits
        self._entries: dict[str, TreeEntry] = {}
        self._directories: set[str] = set()
        self._name_bytes = 0
        self._entry_count = 0
        self._size = 0
        self._store: IO[bytes] = tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY_BYTES)  # noqa: SIM115

    def count_entry(self) -> None:
        """Count one entry of any kind. Raises BuildRefused(ContextTooLarge) above the limit."""
        self._entry_count += 1
        if self._entry_count > self._limits.entries:
            raise BuildRefused(
                CONTEXT_TOO_LARGE,
                f"the source has more than {self._limits.entries} entries",
                "Exclude files that the crew does not need, for example data and virtual environments.",
            )

    def check_room(self, size: int) -> None:
        """Refuse early where `size` more bytes would exceed the limit of unpacked bytes."""
        if self._size + size > self._limits.unpacked_bytes:
            raise BuildRefused(
                CONTEXT_TOO_LARGE,
                f"the source unpacks to more than {self._limits.unpacked_bytes} bytes",
                "Exclude files that the crew does not need; fetch data at run time.",
            )

    def add_directory(self, name: str) -> None:
        """Add an explicit directory; only its name matters. Raises BuildRefused(ContextInvalid)."""
        path = checked_path(name)
        if path:
            self._claim_parents(f"{path}/")

    def add(self, name: str, stream: Readable, executable: bool) -> str:
        """Add the file `name` from `stream`; return its normalized path. Raises BuildRefused."""
        path = checked_path(name)
        if not path:
            raise BuildRefused(
                CONTEXT_INVALID, f"the source has a file without a name ({name!r})", "Pack it again."
            )
        if path in self._entries or path in self._directories:
            raise BuildRefused(
                CONTEXT_INVALID,
                f"{printable(path)} is in the source twice",
                "Pack the source again, each path once.",
            )
        self._claim_parents(path)
        self._count_name(path)
        digest, offset, size = hashlib.sha256(), self._size, 0
        while chunk := stream.read(_CHUNK_BYTES):
            self.check_room(size + len(chunk))
            self._store.write(chunk)
            digest.update(chunk)
            size += len(chunk)
        self._size += size
        self._entries[path] = TreeEntry(offset, size, digest.hexdigest(), executable)
        return path

    def finish(self) -> CheckedSourceTree:
        """Return the tree. Raises BuildRefused(ContextInvalid) where it is empty."""
        if not self._entries:
            raise BuildRefused(
                CONTEXT_INVALID,
                "the source has no files",
                "Check spec.source.git.path of the Project, or the directory that you deploy.",
            )
        return CheckedSourceTree(self._entries, self._store)

    def _count_name(self, path: str) -> None:
        self._name_bytes += len(path.encode())
        if self._name_bytes > _MAX_TOTAL_NAME_BYTES:
            raise BuildRefused(
                CONTEXT_TOO_LARGE,
                "the source's paths are too long in total",
                "Use shorter names or fewer files.",
            )

    def _claim_parents(self, path: str) -> None:
        parent = posixpath.dirname(path)
        while parent and parent not in self._directories:
            if parent in self._entries:
                raise BuildRefused(
                    CONTEXT_INVALID,
                    f"{printable(parent)} is both a file and a directory",
                    "Pack the source again.",
                )
            self._directories.add(parent)
            self._count_name(parent)
            if len(self._directories) > self._limits.entries:  # including implicit ones
                raise BuildRefused(
                    CONTEXT_TOO_LARGE,
                    f"the source has more than {self._limits.entries} directories",
                    "Exclude directories that the crew does not need.",
                )
            parent = posixpath.dirname(parent)


def checked_path(name: str) -> str:
    """Return `name` as a normalized relative path; empty for the root. Raises BuildRefused(ContextInvalid).

    Hostile zips contain backslashes and drive letters.
    """
    if (problem := path_problem(name)) is not None:
        raise BuildRefused(CONTEXT_INVALID, f"the path {printable(name)!r} {problem}", PATH_HINT)
    return "/".join(part for part in name.split("/") if part not in ("", "."))
