"""Run events as JSON, SSE frames and text. Pure. Called by the events routes and `api.streaming.fanout`."""

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any

from api.http.json_encoding import encode
from api.store.logs.events import RunEvent
from api.store.logs.stored_event import StoredEvent
from api.streaming.sse import encoded_frame
from crds import names
from crds.times import format_time


def item(event: RunEvent) -> dict[str, Any]:
    """Return an event as an item of a page."""
    return {"id": event.id, "type": event.type, "data": event.data}


def frames(events: Iterable[RunEvent]) -> Iterator[bytes]:
    """Yield each event as an SSE frame, encoded lazily."""
    return (encoded_frame(event.type, _utf8(event.stored), event.id) for event in events)


def _utf8(event: StoredEvent) -> bytes:
    """Return the data as `encode` writes it. Stored JSON differs from that in escapes, which are rare."""
    return encode(event.data) if b"\\u" in event.json else event.json


def removed(run: str, number: int, now: datetime) -> RunEvent:
    """Return the terminal event of a run whose record was deleted before its end, with its project."""
    data = {"run_id": names.id_of(run), "timestamp": format_time(now), "reason": "Deleted"}
    return RunEvent(number, StoredEvent("run.canceled", data))


def lines(events: Iterable[RunEvent]) -> str:
    """Return the messages of the `log` events, one line each; the pieces of a long line are one."""
    logged = (event.data for event in events if event.type == "log")
    return "".join(
        str(data.get("message", "")) + ("" if data.get("continues") is True else "\n") for data in logged
    )
