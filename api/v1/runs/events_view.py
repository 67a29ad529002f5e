"""Events: what a run said, in the API's forms. Pure. Called by the routes of events and run logs."""

from collections.abc import Iterable, Iterator
from typing import Any

from api.store.logs.events import Event
from api.streaming.sse import frame


def item(event: Event) -> dict[str, Any]:
    """An event of a JSON page."""
    return {"id": event.id, "type": event.type, "data": event.data}


def frames(events: Iterable[Event]) -> Iterator[bytes]:
    """Events as messages of a stream, made as they are sent."""
    return (frame(event.type, event.data, event.id) for event in events)


def lines(events: Iterable[Event]) -> str:
    """The log messages among the events, a line each."""
    return "".join(f"{event.data.get('message', '')}\n" for event in events if event.type == "log")
