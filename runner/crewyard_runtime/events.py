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
_BRIEF_DEPTH = 16
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
            channel.write(line(type, {key: brief(value) for key, value in data.items()}, look=True))
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


def line(type: str, data: dict[str, object], look: bool = False) -> bytes:
    """The event as a line of the channel. `look`: the crew still uses the data, which stays as it is."""
    fitting = fit(data, LARGEST, look)
    return json.dumps({"event": {"type": type, "data": fitting}}, ensure_ascii=False).encode()


def fit(data: dict[str, object], most: int, look: bool = False) -> dict[str, object]:
    """The data as JSON values of at most `most` bytes: the largest values are cut first, then fields
    dropped. Pure with `look`; else generators are used up."""
    value = safe(data, _MOST_ITEMS, look)
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


def brief(value: object) -> object:
    """The value without what could never fit, so that a large state costs the crew no time at every step.
    Pure."""
    return _brief(value, 0, [_MOST_ITEMS])


def _brief(value: object, depth: int, left: list[int]) -> object:
    """`left[0]` is how many items may still be taken, of all that is nested in one value."""
    kind = type(value)
    if kind is str or kind is bytes:
        return value[: LARGEST + 1]  # type: ignore[index]
    if depth >= _BRIEF_DEPTH or kind not in (dict, list, tuple):
        return value
    if kind is dict:
        fields: dict[object, object] = {}
        # Listed at once: another thread of the crew may be changing it.
        for key, item in list(islice(value.items(), max(0, left[0]))):  # type: ignore[attr-defined]
            left[0] -= 1
            fields[key] = _brief(item, depth + 1, left)
            if left[0] <= 0:
                break
        return fields
    items: list[object] = []
    for item in list(islice(value, max(0, left[0]))):  # type: ignore[call-overload]
        left[0] -= 1
        items.append(_brief(item, depth + 1, left))
        if left[0] <= 0:
            break
    more = len(value) - len(items)  # type: ignore[arg-type]
    return [*items, f"… {more} more"] if more else items


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
