"""An append-only list of records in segment files, numbered from 1 without gaps.

A record is one line of JSON. A line counts once it is on disk with its end; a
torn last line, which a killed process or machine leaves, is cut when the journal
is opened. A line in the middle that is no record is Damaged: nothing behind it is
touched (`api.store.logs.repair` mends it). All calls block and run in threads; one caller appends at a time
(`api.store.logs.open_journals`), anyone reads. Called by event logs and build logs.
"""

import json
import os
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

SEGMENT_BYTES = 8 * 1024 * 1024
STRIDE = 256
"""Every how many records a position is remembered, so that reading on does not begin at a file's start."""
NEWEST_BYTES = 4 * 1024
"""What was appended last is remembered up to here; many journals are open."""
READ_BYTES = 4 * 1024 * 1024
"""The most that one read gives, however many records were asked for."""

Record = dict[str, Any]


class Damaged(Exception):
    """The disk gave back something else than was written, within the journal."""


class Journal:
    """The records of one run or build, in one directory."""

    def __init__(self, directory: Path, segment_bytes: int = SEGMENT_BYTES) -> None:
        """Opens the journal and cuts a torn end; nothing is made before the first append."""
        self._directory = directory
        self._segment_bytes = segment_bytes
        names = sorted(directory.glob("*.log")) if directory.is_dir() else []
        self._firsts = [int(path.stem) for path in names]
        self._index: dict[int, list[int]] = {}
        self._size = 0
        self._newest: tuple[int, tuple[bytes, ...]] = (0, ())
        self.last = 0
        if self._firsts:
            whole = _whole_lines(names[-1])
            self.last = self._firsts[-1] + len(whole) - 1
            self._index[self._firsts[-1]] = whole[::STRIDE]
            self._size = names[-1].stat().st_size

    def append(self, records: Sequence[Record]) -> int:
        """Appends all, or none if it fails; returns when they are on disk. Gives the last one's number."""
        if not records:
            return self.last
        made = not self._firsts or self._size >= self._segment_bytes
        if made:
            self._directory.mkdir(parents=True, exist_ok=True)
            self._firsts.append(self.last + 1)
            self._index[self.last + 1] = []
            self._size = 0
        first = self._firsts[-1]
        lines = [json.dumps(record, separators=(",", ":")).encode() for record in records]
        try:
            with self._path(first).open("ab") as file:
                file.write(b"".join(line + b"\n" for line in lines))
                file.flush()
                os.fsync(file.fileno())
            if made:
                _sync_up(self._directory)
        except OSError:
            self._undo(first, made)
            raise
        positions = self._index[first]
        for offset, line in enumerate(lines):
            if (self.last + 1 + offset - first) % STRIDE == 0:
                positions.append(self._size)
            self._size += len(line) + 1
        before, self.last = self.last, self.last + len(lines)
        self._newest = (before, tuple(lines)) if sum(map(len, lines)) <= NEWEST_BYTES else (0, ())
        return self.last

    def recent(self, after: int, limit: int) -> list[Record] | None:
        """As `read`, but from memory and without blocking; None where it would have to be read.

        Who follows a run reads what was appended last: a thread for that takes longer than all else.
        """
        before, lines = self._newest
        if not before <= after < before + len(lines):
            return None
        return [record(line) for line in lines[after - before :][:limit]]

    def read(self, after: int, limit: int) -> list[Record]:
        """Up to `limit` records with numbers above `after`, in order; fewer where they are large.

        Raises Damaged.
        """
        return [record(line) for line in self.lines(after, limit)]

    def lines(self, after: int, limit: int) -> list[bytes]:
        """As `read`, as they are on the disk."""
        found: list[bytes] = []
        # In this order: `remove` may come meanwhile, and then it is the files that are not there.
        firsts, last, room = self._firsts, self.last, READ_BYTES
        number = after + 1
        while number <= last and len(found) < limit and room > 0:
            first = firsts[bisect_right(firsts, number) - 1]
            following = next((other for other in firsts if other > first), last + 1)
            stop = min(last, following - 1, after + limit)
            with self._path(first).open("rb") as file:
                positions = self._positions(first)
                if (number - first) // STRIDE >= len(positions):
                    raise Damaged(f"lines are missing in {self._path(first)}")
                file.seek(positions[(number - first) // STRIDE])
                for _ in range((number - first) % STRIDE):
                    file.readline()
                while number <= stop and room > 0:
                    line = file.readline()
                    room -= len(line)
                    found.append(line)
                    number += 1
        return found

    def marked(self, marker: bytes) -> Iterator[Record]:
        """The records whose line holds `marker`, in order; the others are not parsed. Raises Damaged."""
        last, firsts = self.last, list(self._firsts)
        for place, first in enumerate(firsts):
            stop = firsts[place + 1] if place + 1 < len(firsts) else last + 1
            with self._path(first).open("rb") as file:
                for _ in range(first, stop):
                    line = file.readline()
                    if marker in line:
                        yield record(line)

    def remove(self) -> None:
        """Deletes all records, the last ones first: what a crash leaves is a journal too."""
        for first in reversed(self._firsts):
            self._path(first).unlink(missing_ok=True)
        self._firsts, self._index, self.last, self._size = [], {}, 0, 0
        self._newest = (0, ())
        if self._directory.is_dir():
            self._directory.rmdir()

    def _path(self, first: int) -> Path:
        return self._directory / f"{first:020d}.log"

    def _positions(self, first: int) -> list[int]:
        if first not in self._index:
            self._index[first] = _starts(self._path(first))[::STRIDE]
        return self._index[first]

    def _undo(self, first: int, made: bool) -> None:
        """What a failed write left behind the acknowledged end must not become records later."""
        path = self._path(first)
        if made:
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
    """The positions of the whole records of the last segment; cuts a torn end. Raises Damaged."""
    starts, position = [], 0
    with path.open("r+b") as file:
        for line in file:
            if not is_record(line):
                if any(is_record(behind) for behind in file):
                    raise Damaged(f"there are records behind a line of {path} that is none")
                file.truncate(position)
                os.fsync(file.fileno())
                break
            starts.append(position)
            position += len(line)
    return starts


def record(line: bytes) -> Record:
    """The record of a line. Raises Damaged."""
    try:
        found = json.loads(line)
    except ValueError as error:
        raise Damaged("a line of a journal is no JSON") from error
    if not isinstance(found, dict):
        raise Damaged("a line of a journal is no record")
    return found


def is_record(line: bytes) -> bool:
    """Whether a line is whole, and a record."""
    try:
        record(line)
    except Damaged:
        return False
    return line.endswith(b"\n")


def _sync_up(directory: Path) -> None:
    """A new file's name is on disk only when its directory is, and so on upwards."""
    for folder in (directory, directory.parent, directory.parent.parent):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
