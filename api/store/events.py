"""The events of runs, as readers see them. Called by the event stream, run logs and the pods' routes.

A replay is exactly: run.started (id 1, from the claim), what the run said, and one terminal event (from the
row, the last id + 1). A run that was never claimed has its terminal event alone, with id 1.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Event:
    """One event. `data` holds `run_id` and `timestamp` already; `id` counts from 1 without gaps."""

    id: int
    type: str
    data: Mapping[str, Any]


@dataclass(frozen=True)
class EventPage:
    """Events after a position. `ended`: nothing will ever follow these. `mark` is for `Events.wait`."""

    events: tuple[Event, ...]
    ended: bool
    mark: int


class Events:
    """The events of all runs of one namespace."""

    async def read(self, run: str, after: int, limit: int) -> EventPage:
        """Up to `limit` events with ids above `after`. Raises Missing for an unknown run."""
        raise NotImplementedError

    async def wait(self, run: str, mark: int, timeout: float) -> None:
        """Returns at once if something happened to the run since `mark`, else when it does or after
        `timeout` seconds.
        """
        raise NotImplementedError
