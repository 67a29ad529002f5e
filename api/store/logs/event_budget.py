"""Budget of a run's event log: what still fits, and the notice that takes the place of the rest. Pure.

A full log acknowledges events without storing them: a runner that waited for them would stop its crew. The
notice is the last of the runner's records in it and marks the log as full, also for the next process that
opens it. Called by the event logs.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from api.store.logs.journal import encode_record

MAX_EXPANSION = 6
"""JSON writes a byte as six at most."""


@dataclass(frozen=True)
class EventBudget:
    """Events and bytes that a run's log may have; `notice` says what was reached."""

    events: int
    bytes: int
    notice: str = ""

    def may_exceed(self, count: int, size: int, new_count: int, new_bytes: int) -> bool:
        """Return whether new events with so many bytes of text might not fit."""
        return count + new_count > self.events or size + new_bytes * MAX_EXPANSION > self.bytes


NO_BUDGET = EventBudget(1 << 62, 1 << 62)


def fit(
    lines: Sequence[bytes], seq: int, count: int, size: int, budget: EventBudget, head: Mapping[str, Any]
) -> tuple[list[bytes], bool]:
    """Return the lines that fit into a log with `count` records and `size` bytes, and whether it is full.

    `seq` is the number before the first of them. The first one that does not fit becomes the notice; `head`
    are its run and time.
    """
    kept: list[bytes] = []
    for number, line in enumerate(lines, seq + 1):
        size += len(line) + 1
        if count + len(kept) >= budget.events or size > budget.bytes:
            message = f"{budget.notice}; later events of this run are not stored"
            data = {**head, "level": "warning", "message": message}
            return [*kept, encode_record({"s": number, "t": "log", "d": data, "full": True})], True
        kept.append(line)
    return kept, False
