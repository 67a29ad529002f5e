"""One run's log of what it said, without the first and the last event, which are derived.

A record is `{"t": type, "d": data}` with `"s"`, the runner's own number, or `"v"`,
the number of a stored artifact's version: both make a repeated call append
nothing. Blocking; held by `api.store.logs.event_logs`, one writer at a time.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import structlog

from api.store.logs.journal import Damaged, Journal, Record
from api.store.logs.repair import mend_files

logger = structlog.get_logger()

LOOK = 1000
MOST_LEFT_OUT = 1000
"""Versions between two that the log tells of: more than a run has files are never on their way."""
MAX_TOKENS = 10**9
"""Of one event; what a crew says is not to spoil the sum."""


@dataclass(frozen=True)
class Said:
    """An event as the runner numbered it; `data` is complete."""

    seq: int
    type: str
    data: Mapping[str, Any]


@dataclass
class Versions:
    """Which versions of artifacts a log tells of: all up to the last, but those that are left out.

    Files are stored several at once. Of one whose row was written, but not its event, the event comes when
    it is sent again, and others may have come before it.
    """

    last: int = 0
    left_out: set[int] = field(default_factory=set)

    def __contains__(self, version: int) -> bool:
        return version <= self.last and version not in self.left_out

    def add(self, version: int) -> None:
        """The log tells of it now."""
        self.left_out.update(range(max(self.last + 1, version - MOST_LEFT_OUT), version))
        self.left_out.discard(version)
        self.last = max(self.last, version)


class EventLog:
    """The journal of one run and the greatest numbers in it."""

    def __init__(self, directory: Path) -> None:
        """Opens the log; one that is damaged is mended first, as far as it can be."""
        self._directory = directory
        try:
            self._open(directory)
        except Damaged as error:
            lost = mend_files(directory)
            logger.error("a damaged event log was mended", run=directory.name, lost=lost, error=str(error))
            self._open(directory)

    def _open(self, directory: Path) -> None:
        self._journal = Journal(directory)
        self.seq = 0
        self._versions = Versions()
        # Numbers only grow, so the newest record of what was said has the greatest: look from the end. The
        # last artifact may be far back, and what lies between is not worth parsing.
        for stored in self._journal.marked(b'{"v":'):
            self._versions.add(stored.get("v", 0))
        stop = self._journal.last
        while stop > 0 and not self.seq:
            start = max(0, stop - LOOK)
            after = start
            while after < stop:
                records = self._journal.read(after, stop - after)
                after += len(records)
                for record in records:
                    self.seq = max(self.seq, record.get("s", 0))
            stop = start

    @property
    def version(self) -> int:
        """The greatest version of an artifact in it."""
        return self._versions.last

    @property
    def last(self) -> int:
        """How many records there are."""
        return self._journal.last

    def say(self, events: Sequence[Said]) -> int:
        """Appends what is new and follows without a gap. Gives the greatest number stored."""
        fresh = following(events, self.seq)
        self._journal.append(fresh)
        self.seq += len(fresh)
        return self.seq

    def stored(self, version: int, data: Mapping[str, Any]) -> None:
        """Appends the event of an artifact's version, unless it is there."""
        if version not in self._versions:
            self._journal.append([{"v": version, "t": "artifact", "d": dict(data)}])
            self._versions.add(version)

    def read(self, after: int, limit: int) -> list[Record]:
        """Up to `limit` records after the first `after` ones. Raises Damaged."""
        return self._journal.read(after, limit)

    def recent(self, after: int, limit: int) -> list[Record] | None:
        """As `read`, without blocking; None where it is not remembered."""
        return self._journal.recent(after, limit)

    def lines(self, after: int, limit: int) -> list[bytes]:
        """As `read`, as they are on the disk."""
        return self._journal.lines(after, limit)

    def tokens(self) -> tuple[int, int]:
        """The prompt and completion tokens of all `usage` events."""
        prompt = completion = 0
        for record in self._journal.marked(b'"t":"usage"'):
            more = count_tokens(record)
            prompt, completion = prompt + more[0], completion + more[1]
        return prompt, completion

    def remove(self) -> None:
        """Deletes the log."""
        for left in self._directory.glob("*.new"):
            left.unlink()
        self._journal.remove()


def following(events: Sequence[Said], seq: int) -> list[Record]:
    """The records of those events that follow the number `seq` without a gap."""
    fresh: list[Record] = []
    for event in events:
        if event.seq == seq + 1:
            seq = event.seq
            fresh.append({"s": seq, "t": event.type, "d": dict(event.data)})
    return fresh


def count_tokens(record: Record) -> tuple[int, int]:
    """The prompt and completion tokens of a `usage` event; 0 for others, and for what is no count."""
    if record["t"] != "usage":
        return 0, 0
    return _count(record["d"].get("prompt_tokens")), _count(record["d"].get("completion_tokens"))


def _count(value: Any) -> int:
    return value if type(value) is int and 0 <= value <= MAX_TOKENS else 0
