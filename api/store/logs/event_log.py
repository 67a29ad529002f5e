"""The event log of one run, without its first and last event, which are derived.

A record is `{"t": type, "d": data}` with `"s"`, the runner's number, or `"v"`, the version number of a stored
artifact: both make repeated appends idempotent. Blocking; opened by `api.store.logs.event_logs`, one writer
at a time.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import structlog

from api.store.logs.event_budget import NO_BUDGET, EventBudget, fit
from api.store.logs.journal import Journal, JournalDamaged, encode_record
from api.store.logs.repair import repair_files
from api.store.token_counts import TokenCounts

logger = structlog.get_logger()

SCAN_BATCH = 1000
MAX_MISSING_VERSIONS = 1000
"""Most versions that may be missing between two in the log; a run never has more files in transit."""


@dataclass(frozen=True)
class NewEvent:
    """An event with the runner's number; `data` is complete."""

    seq: int
    type: str
    data: Mapping[str, Any]

    @cached_property
    def line(self) -> bytes:
        """The record of the log that stores it."""
        return encode_record({"s": self.seq, "t": self.type, "d": dict(self.data)})


@dataclass
class ArtifactVersions:
    """The artifact versions in a log: all up to the last one, except the missing ones.

    Files are stored in parallel. If a file's row was written but not its event, the event follows when the
    runner repeats the call; events of later versions may precede it.
    """

    last: int = 0
    missing: set[int] = field(default_factory=set)

    def __contains__(self, version: int) -> bool:
        return version <= self.last and version not in self.missing

    def add(self, version: int) -> None:
        """Add a version that the log now contains."""
        self.missing.update(range(max(self.last + 1, version - MAX_MISSING_VERSIONS), version))
        self.missing.discard(version)
        self.last = max(self.last, version)


class EventLog:
    """The journal of one run and the greatest numbers in it."""

    def __init__(self, directory: Path) -> None:
        """Open the log; repair a damaged one first, as far as possible."""
        self._directory = directory
        try:
            self._open(directory)
        except JournalDamaged as error:
            lost = repair_files(directory)
            logger.error("a damaged event log was repaired", run=directory.name, lost=lost, error=str(error))
            self._open(directory)

    def _open(self, directory: Path) -> None:
        self._journal = Journal(directory)
        self.seq = 0
        self.full = False
        self._versions = ArtifactVersions()
        # Numbers only grow, so the newest event record has the greatest: search from the end. The last
        # artifact may be far back, and the records in between need no parsing.
        for record in self._journal.records_containing(b'{"v":'):
            self._versions.add(record.get("v", 0))
        stop = self._journal.last
        while stop > 0 and not self.seq:
            start = max(0, stop - SCAN_BATCH)
            after = start
            while after < stop:
                records = self._journal.read(after, stop - after)
                after += len(records)
                for record in records:
                    self.seq = max(self.seq, record.get("s", 0))
                    self.full = self.full or record.get("full", False)
            stop = start

    @property
    def version(self) -> int:
        """The greatest artifact version in the log."""
        return self._versions.last

    @property
    def last(self) -> int:
        """The number of records."""
        return self._journal.last

    @property
    def size_bytes(self) -> int:
        """The bytes of all records."""
        return self._journal.size_bytes

    def append(self, events: Sequence[NewEvent], budget: EventBudget = NO_BUDGET, text_bytes: int = 0) -> int:
        """Append the new events that follow without a gap; return the greatest number stored.

        `text_bytes`: the most bytes that the events have. A full log stores none and returns the last number.
        """
        if self.full:
            return max(self.seq, events[-1].seq) if events else self.seq
        fresh, full = fitting_lines(events, self.seq, self.last, self.size_bytes, budget, text_bytes)
        self._journal.append(fresh)
        self.seq += len(fresh)
        self.full = full
        return max(self.seq, events[-1].seq) if full else self.seq

    def append_artifact(self, version: int, data: Mapping[str, Any]) -> None:
        """Append the event of an artifact's version, unless the log contains it or is full."""
        if version not in self._versions and not self.full:
            self._journal.append([artifact_line(version, data)])
            self._versions.add(version)

    def recent(self, after: int, limit: int) -> Sequence[bytes] | None:
        """Read lines without blocking; return None if they are not in memory."""
        return self._journal.recent(after, limit)

    def lines(self, after: int, limit: int) -> list[bytes]:
        """Return up to `limit` lines after the first `after` ones. Raises JournalDamaged."""
        return self._journal.lines(after, limit)

    def tokens(self) -> TokenCounts:
        """Return the tokens of all `usage` events."""
        counts = TokenCounts()
        for record in self._journal.records_containing(b'"t":"usage"'):
            counts.add(record["t"], record["d"])
        return counts

    def remove(self) -> None:
        """Delete the log."""
        for unfinished in self._directory.glob("*.new"):
            unfinished.unlink()
        self._journal.remove()


def artifact_line(version: int, data: Mapping[str, Any]) -> bytes:
    """Return the record of an artifact's version."""
    return encode_record({"v": version, "t": "artifact", "d": dict(data)})


def fitting_lines(
    events: Sequence[NewEvent], seq: int, count: int, size: int, budget: EventBudget, text_bytes: int
) -> tuple[list[bytes], bool]:
    """Return the lines of new events that fit into a log, and whether it is full with them.

    The log has the number `seq`, `count` records and `size` bytes; `text_bytes` are the most of the events.
    """
    fresh = new_lines(events, seq)
    if not fresh or not budget.may_exceed(count, size, len(fresh), text_bytes):
        return fresh, False
    first = events[0].data
    head = {key: first[key] for key in ("run_id", "timestamp") if key in first}
    return fit(fresh, seq, count, size, budget, head)


def new_lines(events: Sequence[NewEvent], seq: int) -> list[bytes]:
    """Return the lines of the events that follow the number `seq` without a gap."""
    fresh: list[bytes] = []
    for event in events:
        if event.seq == seq + 1:
            seq = event.seq
            fresh.append(event.line)
    return fresh
