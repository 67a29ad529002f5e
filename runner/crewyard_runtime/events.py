"""`emit`: an event of the crew's own among the events of its run. Called by crews."""

from __future__ import annotations

import json
from itertools import islice

from . import channel
from .jsonsafe import safe

LARGEST = 64 * 1024 - 512  # bytes of the data; the rest of an event's 64 KiB is its frame
MARK = "… [cut]"
_WORTH_CUTTING = 256  # bytes of a field; smaller ones are kept or dropped whole
_MOST_ITEMS = LARGEST // 3  # an item takes three bytes at least, as in "1, "
_BRIEF_DEPTH = 3
_RESERVED = ("run_id", "timestamp")
_ALLOWED = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")


def emit(type: str, /, **data: object) -> None:
    """Adds an event to the run: `emit("progress", done=3, of=10)`.

    Any value is made JSON; what is above 64 KiB is cut, with a mark. Does nothing outside a run, so that a
    crew
    can be tried anywhere. Safe in threads and in forked processes. Raises ValueError for a type that the
    service
    itself emits (`artifact`, `run.*`) or that is no name, and for the keys `run_id` and `timestamp`.
    """
    check(type, data)
    if channel.is_open():
        channel.write(line(type, data))


def tell(type: str, data: dict[str, object]) -> None:
    """`emit` for what a framework does: never raises, since the crew knows nothing of it."""
    try:
        if channel.is_open():
            channel.write(line(type, {key: brief(value) for key, value in data.items()}))
    except Exception:  # a value that fails in being looked at
        return


def check(type: object, data: dict[str, object]) -> None:
    """Raises ValueError as `emit` does."""
    if not isinstance(type, str) or not 0 < len(type) <= 64 or not set(type) <= _ALLOWED:
        raise ValueError(
            f"emit: {type!r} is no event type; use up to 64 letters, digits and . _ - as in 'report.done'"
        )
    if type == "artifact" or type.startswith("run."):
        better = (
            "write the file into the artifacts directory and the service emits it"
            if type == "artifact"
            else f"the service emits these; choose a name of your own, such as {type[4:] or 'progress'!r}"
        )
        raise ValueError(f"emit: the type {type!r} is reserved: {better}")
    for key in _RESERVED:
        if key in data:
            raise ValueError(
                f"emit: the key {key!r} is reserved: the service sets it; call yours {'my_' + key!r}"
            )


def line(type: str, data: dict[str, object]) -> bytes:
    """The event as a line of the channel. Pure."""
    return json.dumps({"event": {"type": type, "data": fit(data, LARGEST)}}, ensure_ascii=False).encode()


def fit(data: dict[str, object], most: int) -> dict[str, object]:
    """The data as JSON values of at most `most` bytes: the largest values are cut first, then fields
    dropped. Pure."""
    value = safe(data)
    fields: dict[str, object] = value if isinstance(value, dict) else {}
    sizes = {key: _size(key) + _size(item) + 4 for key, item in fields.items()}
    total = sum(sizes.values()) + 2
    for key in sorted(sizes, key=lambda one: -sizes[one]):
        if total <= most or sizes[key] <= _WORTH_CUTTING:
            break
        total -= sizes[key]
        fields[key] = _cut(fields[key], max(most - total - _size(key) - 4, _WORTH_CUTTING // 4))
        sizes[key] = _size(key) + _size(fields[key]) + 4
        total += sizes[key]
    for key in reversed(list(sizes)):
        if total <= most:
            break
        total -= sizes[key]
        del fields[key]
    return fields


def brief(value: object, depth: int = 0) -> object:
    """The value without what could never fit, so that a large state costs the crew no time at every step.
    Pure."""
    kind = type(value)
    if kind is str or kind is bytes:
        return value[: LARGEST + 1]  # type: ignore[index]
    if depth >= _BRIEF_DEPTH:
        return value
    if kind is dict:
        return {key: brief(item, depth + 1) for key, item in islice(value.items(), _MOST_ITEMS)}  # type: ignore[attr-defined]
    if kind is list or kind is tuple:
        items = [brief(item, depth + 1) for item in islice(value, _MOST_ITEMS)]  # type: ignore[call-overload]
        more = len(value) - len(items)  # type: ignore[arg-type]
        return [*items, f"… {more} more"] if more else items
    return value


def _cut(value: object, most: int) -> str:
    """The start of the value's text with the mark; at most `most` bytes as JSON, but for the mark itself."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    room = most - _size(MARK)
    while text and _size(text) > room:
        # A character takes one to six bytes in JSON: cut by what these really take.
        text = text[: min(len(text) * max(room, 0) // _size(text), len(text) - 1)]
    return text + MARK


def _size(value: object) -> int:
    return len(json.dumps(value, ensure_ascii=False).encode())
