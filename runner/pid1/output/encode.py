"""JSON encoding of events. Pure; used by `capture`, `event_queue`, `upload`, `sender` and `shutdown`."""

from __future__ import annotations

import time

from runner.pid1.api.fast_json import dumps, quoted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

LEVELS = frozenset({"debug", "info", "warning", "error", "critical"})


def timestamp(nanoseconds: int) -> str:
    """Return Unix nanoseconds as an ISO 8601 timestamp in UTC with microseconds."""
    seconds, nanos = divmod(nanoseconds, 1_000_000_000)
    return f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(seconds))}.{nanos // 1000:06d}Z"


def log(message: str, level: str = "info", continues: bool = False) -> str:
    """Return the data of a log event."""
    suffix = ', "continues": true' if continues else ""
    return f'{{"message": {quoted(message)}, "level": "{level}"{suffix}}}'


def logs(message: str, level: str, continues: bool, limit: int) -> Iterator[str]:
    """Yield the data of one log event, or of several if the escaped text exceeds `limit` bytes."""
    data = log(message, level, continues)
    if len(data) * 4 <= limit or len(data.encode()) <= limit or len(message) < 2:
        yield data
        return
    middle = len(message) // 2
    yield from logs(message[:middle], level, True, limit)
    yield from logs(message[middle:], level, continues, limit)


def data(value: dict[str, object]) -> str:
    """Return the data of an event as JSON; lone surrogates, which UTF-8 cannot encode, become U+FFFD."""
    written = dumps(value, ascii_only=False)
    try:
        written.encode()
    except UnicodeEncodeError:
        written = written.encode("utf-8", "replace").decode()
    return written


def event(seq: int, kind: str, time_: str, data_: str) -> bytes:
    """Return one complete event of a batch."""
    text = f'{{"seq": {seq}, "type": {quoted(kind)}, "time": "{time_}", "data": {data_}}}'
    return text.encode("utf-8", "replace")
