"""Events as JSON text, ready to be numbered and sent. Pure but for `stamp`; used by `intake` and `queue`."""

from __future__ import annotations

import time

from runner.pid1.api.fast_json import dumps, quoted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

LEVELS = frozenset({"debug", "info", "warning", "error", "critical"})


def stamp(nanoseconds: int) -> str:
    """Wall-clock nanoseconds since 1970 as ISO 8601 in UTC, to the microsecond."""
    seconds, rest = divmod(nanoseconds, 1_000_000_000)
    return f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(seconds))}.{rest // 1000:06d}Z"


def log(message: str, level: str = "info", continues: bool = False) -> str:
    """The data of a log event."""
    mark = ', "continues": true' if continues else ""
    return f'{{"message": {quoted(message)}, "level": "{level}"{mark}}}'


def logs(message: str, level: str, continues: bool, limit: int) -> Iterator[str]:
    """The data of one log event, or of several where the text, escaped, is above `limit` bytes."""
    data = log(message, level, continues)
    if len(data) * 4 <= limit or len(data.encode()) <= limit or len(message) < 2:
        yield data
        return
    middle = len(message) // 2
    yield from logs(message[:middle], level, True, limit)
    yield from logs(message[middle:], level, continues, limit)


def data(value: dict[str, object]) -> str:
    """Any event's data that came as JSON; lone surrogates become U+FFFD, since nobody takes them."""
    written = dumps(value, ascii_only=False)
    try:
        written.encode()
    except UnicodeEncodeError:
        written = written.encode("utf-8", "replace").decode()
    return written


def event(seq: int, kind: str, time_: str, data_: str) -> bytes:
    """One whole event, as it stands in a batch."""
    return f'{{"seq": {seq}, "type": {quoted(kind)}, "time": "{time_}", "data": {data_}}}'.encode()
