"""Parser of Server-Sent Events. Pure. Called by `actions.workflow.client.api`."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class StreamMessage:
    """One message; `id` is None if it has none."""

    id: str | None
    event: str
    data: str


class StreamReader:
    """Reads successive connections of one stream, each message once.

    `last` is the id to resume after, `retry` the reconnect delay in seconds that the service requested.
    The service repeats messages without an id after a reconnect: the reader skips as many as it delivered
    since `last`, and messages whose numeric id is not above `last`.
    """

    def __init__(self) -> None:
        self.last: str | None = None
        self.retry: float | None = None
        self._delivered_since_last = 0

    def messages(self, lines: Iterable[bytes]) -> Iterator[StreamMessage]:
        """Yield the new messages of a connection; drops a message that is cut off."""
        to_skip = self._delivered_since_last
        for message in self._parse(lines):
            if _number(message.id) and _number(self.last) and int(message.id or 0) <= int(self.last or 0):
                continue
            repeated = to_skip > 0
            to_skip -= 1
            if message.id:
                self.last, self._delivered_since_last = message.id, 0
                to_skip = min(to_skip, 0)
            elif not repeated:
                self._delivered_since_last += 1
            if not repeated:
                yield message

    def _parse(self, lines: Iterable[bytes]) -> Iterator[StreamMessage]:
        identifier: str | None = None
        event, data = "message", list[str]()
        for raw in lines:
            line = raw.decode("utf-8", "replace").rstrip("\r\n")
            if not raw.endswith(b"\n"):
                return
            name, _, value = line.partition(":")
            value = value.removeprefix(" ")
            if not line:
                if data:
                    yield StreamMessage(identifier, event, "\n".join(data))
                identifier, event, data = None, "message", []
            elif name == "data":
                data.append(value)
            elif name == "event":
                event = value
            elif name == "id" and "\0" not in value:
                identifier = value or None
            elif name == "retry" and value.isascii() and value.isdigit():
                self.retry = min(int(value[:9]) / 1000, 30.0)


def _number(text: str | None) -> bool:
    return text is not None and text.isascii() and text.isdigit() and len(text) < 16


def as_object(value: Any) -> dict[str, Any]:
    """Return `value` if it is an object, else {}: a display value must not fail the step."""
    return value if isinstance(value, dict) else {}


def parse_object(text: str) -> dict[str, Any]:
    """Return the JSON object of a message; {} if it is not one."""
    try:
        return as_object(json.loads(text))
    except ValueError:
        return {}
