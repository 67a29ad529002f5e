"""Append-only list of records in segment files, numbered from 1 without gaps.

A record is one line of JSON. A line counts once it is on disk with its newline; opening the journal cuts a
torn last line, left by a killed process or machine. An invalid line in the middle raises JournalDamaged, and
nothing after it is changed (`api.store.logs.repair` repairs it). All calls block and run in threads; one
caller appends at a time (`api.store.logs.open_journals`), any number reads. Called by event logs and build
logs.
"""

import json
import os
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

SEGMENT_BYTES = 8 * 1024 * 1024
INDEX_STRIDE = 256
"""Records per remembered position: reading from a position then starts near it, not at the file's start."""
RECENT_MAX_BYTES = 4 * 1024
"""Most bytes of the last append kept in memory; many journals are open."""
MAX_READ_BYTES = 4 * 1024 * 1024
"""Most bytes of one read, however many records are requested."""

Record = dict[str, Any]


class JournalDamaged(Exception):
    """The disk returned other data than was written, inside the journal."""


class Journal:
    """The records of one run or build, in one directory."""

    def __init__(self, directory: Path, segment_bytes: int = SEGMENT_BYTES) -> None:
        """Open the journal and cut a torn end; create nothing before the first append."""
        self._directory = directory
        self._segment_bytes = segment_bytes
        names = sorted(directory.glob("*.log")) if directory.is_dir() else []
        self._firsts = [int(path.stem) for path in names]
        self._index: dict[int, list[int]] = {}
        self._size = 0
        self._earlier_bytes = sum(path.stat().st_size for path in names[:-1])
        self._recent: tuple[int, tuple[bytes, ...]] = (0, ())
        self.last = 0
        if self._firsts:
            starts = _whole_lines(names[-1])
            self.last = self._firsts[-1] + len(starts) - 1
            self._index[self._firsts[-1]] = starts[::INDEX_STRIDE]
            self._size = names[-1].stat().st_size

    def append(self, lines: Sequence[bytes]) -> int:
        """Append all encoded records, or none on failure; return the last number once they are on disk."""
        if not lines:
            return self.last
        new_segment = not self._firsts or self._size >= self._segment_bytes
        if new_segment:
            self._directory.mkdir(parents=True, exist_ok=True)
            self._firsts.append(self.last + 1)
            self._index[self.last + 1] = []
            self._earlier_bytes += self._size
            self._size = 0
        first = self._firsts[-1]
        try:
            with self._path(first).open("ab") as file:
                file.write(b"".join(line + b"\n" for line in lines))
                file.flush()
                os.fsync(file.fileno())
            if new_segment:
                _sync_up(self._directory)
        except OSError:
            self._undo(first, new_segment)
            raise
        positions = self._index[first]
        for offset, line in enumerate(lines):
            if (self.last + 1 + offset - first) % INDEX_STRIDE == 0:
                positions.append(self._size)
            self._size += len(line) + 1
        before, self.last = self.last, self.last + len(lines)
        self._recent = (before, tuple(lines)) if sum(map(len, lines)) <= RECENT_MAX_BYTES else (0, ())
        return self.last

    @property
    def size_bytes(self) -> int:
        """The bytes of all records on disk."""
        return self._earlier_bytes + self._size

    def recent(self, after: int, limit: int) -> Sequence[bytes] | None:
        """Read lines from memory without blocking; return None if it would have to read the file.

        Followers of a run read the last append: a thread for that costs more than everything else.
        """
        before, lines = self._recent
        if not before <= after < before + len(lines):
            return None
        return lines[after - before :][:limit]

    def read(self, after: int, limit: int) -> list[Record]:
        """Return up to `limit` records with numbers above `after`, in order; fewer if they are large.

        Raises JournalDamaged.
        """
        return [record(line) for line in self.lines(after, limit)]

    def lines(self, after: int, limit: int) -> list[bytes]:
        """Read the records as bytes on disk."""
        lines: list[bytes] = []
        # In this order: after a concurrent `remove`, the files are missing rather than the numbers.
        segment_starts, last, room = self._firsts, self.last, MAX_READ_BYTES
        number = after + 1
        while number <= last and len(lines) < limit and room > 0:
            first = segment_starts[bisect_right(segment_starts, number) - 1]
            next_first = next((other for other in segment_starts if other > first), last + 1)
            stop = min(last, next_first - 1, after + limit)
            with self._path(first).open("rb") as file:
                positions = self._positions(first)
                if (number - first) // INDEX_STRIDE >= len(positions):
                    raise JournalDamaged(f"lines are missing in {self._path(first)}")
                file.seek(positions[(number - first) // INDEX_STRIDE])
                for _ in range((number - first) % INDEX_STRIDE):
                    file.readline()
                while number <= stop and room > 0:
                    line = file.readline()
                    room -= len(line)
                    lines.append(line)
                    number += 1
        return lines

    def records_containing(self, marker: bytes) -> Iterator[Record]:
        """Yield, in order, the records whose line contains `marker`. Raises JournalDamaged.

        The other lines are not parsed.
        """
        last, segment_starts = self.last, list(self._firsts)
        for index, first in enumerate(segment_starts):
            stop = segment_starts[index + 1] if index + 1 < len(segment_starts) else last + 1
            with self._path(first).open("rb") as file:
                for _ in range(first, stop):
                    line = file.readline()
                    if marker in line:
                        yield record(line)

    def remove(self) -> None:
        """Delete all records, the last segment first: after a crash the rest is still a journal."""
        for first in reversed(self._firsts):
            self._path(first).unlink(missing_ok=True)
        self._firsts, self._index, self.last, self._size = [], {}, 0, 0
        self._recent = (0, ())
        if self._directory.is_dir():
            self._directory.rmdir()

    def _path(self, first: int) -> Path:
        return self._directory / f"{first:020d}.log"

    def _positions(self, first: int) -> list[int]:
        if first not in self._index:
            self._index[first] = _starts(self._path(first))[::INDEX_STRIDE]
        return self._index[first]

    def _undo(self, first: int, new_segment: bool) -> None:
        """Delete the bytes of a failed write: they must not become records later."""
        path = self._path(first)
        if new_segment:
            self._firsts.pop()
            del self._index[first]
            path.unlink(missing_ok=True)
            self._size = self._path(self._firsts[-1]).stat().st_size if self._firsts else 0
        else:
            os.truncate(path, self._size)


def _starts(path: Path) -> list[int]:
    starts, position = [], 0
    with path.open("rb") as file:
        for line in file:
            starts.append(position)
            position += len(line)
    return starts


def _whole_lines(path: Path) -> list[int]:
    """Return the start positions of the last segment's records; cut a torn end. Raises JournalDamaged."""
    starts, position = [], 0
    with path.open("r+b") as file:
        for line in file:
            if not is_record(line):
                if any(is_record(later) for later in file):
                    raise JournalDamaged(f"{path} has records after a line that is not a record")
                file.truncate(position)
                os.fsync(file.fileno())
                break
            starts.append(position)
            position += len(line)
    return starts


def encode_record(record: Record) -> bytes:
    """Return a record as one line of JSON, in ASCII and without the newline."""
    return json.dumps(record, separators=(",", ":")).encode()


def record(line: bytes) -> Record:
    """Return the record of a line. Raises JournalDamaged."""
    try:
        value = json.loads(line)
    except ValueError as error:
        raise JournalDamaged("a line of a journal is not JSON") from error
    if not isinstance(value, dict):
        raise JournalDamaged("a line of a journal is not a record")
    return value


def is_record(line: bytes) -> bool:
    """Return whether a line is complete and a record."""
    try:
        record(line)
    except JournalDamaged:
        return False
    return line.endswith(b"\n")


def _sync_up(directory: Path) -> None:
    """Sync a new file's name to disk: its directory and the parents it may have created."""
    for folder in (directory, directory.parent, directory.parent.parent):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
