"""Budget of a run's event log: what still fits, and the notice that takes the place of the rest. Pure.

A full log acknowledges events without storing them: a runner that waited for them would stop its crew. The
notice is the last of the runner's records in it and marks the log as full, also for the next process that
opens it. Called by the event logs.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Record = dict[str, Any]
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
    records: Sequence[Record], count: int, size: int, budget: EventBudget, head: Mapping[str, Any]
) -> tuple[list[Record], bool]:
    """Return the records that fit into a log with `count` records and `size` bytes, and whether it is full.

    The first one that does not fit becomes the notice; `head` are its run and time.
    """
    kept: list[Record] = []
    for record in records:
        size += len(json.dumps(record, separators=(",", ":"))) + 1
        if count + len(kept) >= budget.events or size > budget.bytes:
            message = f"{budget.notice}; later events of this run are not stored"
            data = {**head, "level": "warning", "message": message}
            return [*kept, {"s": record["s"], "t": "log", "d": data, "full": True}], True
        kept.append(record)
    return kept, False
