"""Server-sent events as a sequence of messages. Pure. Called by `actions.workflow.client.api`."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Message:
    """One message: `id` is None where it has none, `data` its text."""

    id: str | None
    event: str
    data: str


class Reader:
    """Reads one connection after another; `last` is the id to resume after, `retry` the wished pause (s).

    Messages without an id come again after a reconnect: as many as were given
    since `last` are left out then, as are those whose number was given before.
    """

    def __init__(self) -> None:
        self.last: str | None = None
        self.retry: float | None = None
        self._since = 0

    def messages(self, lines: Iterable[bytes]) -> Iterator[Message]:
        """The new messages of a connection. One that breaks off in the middle of a message gives it not."""
        again = self._since
        for found in self._parsed(lines):
            if _number(found.id) and _number(self.last) and int(found.id or 0) <= int(self.last or 0):
                continue
            old = again > 0
            again -= 1
            if found.id:
                self.last, self._since = found.id, 0
                again = min(again, 0)
            elif not old:
                self._since += 1
            if not old:
                yield found

    def _parsed(self, lines: Iterable[bytes]) -> Iterator[Message]:
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
                    yield Message(identifier, event, "\n".join(data))
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


def whole(value: Any) -> dict[str, Any]:
    """`value` if it is an object, else an empty one: what is shown is never worth a failure."""
    return value if isinstance(value, dict) else {}


def parsed(text: str) -> dict[str, Any]:
    """The data of a message; empty where it is no object."""
    try:
        return whole(json.loads(text))
    except ValueError:
        return {}
