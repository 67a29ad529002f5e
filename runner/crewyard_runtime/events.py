"""`emit`: adds a custom event to the events of the run. Called by crews."""

from __future__ import annotations

import json
from itertools import islice

from . import channel
from .jsonsafe import json_safe

_FRAME_BYTES = 512
MAX_DATA_BYTES = 64 * 1024 - _FRAME_BYTES  # the rest of the 64 KiB of an event is its frame
CUT_MARK = "… [cut]"
_MIN_CUT_BYTES = 256  # smaller fields are kept or dropped, never cut
_MAX_ITEMS = MAX_DATA_BYTES // 3  # an item takes at least three bytes, as in "1, "
_MAX_TRUNCATE_DEPTH = 16
_RESERVED = ("run_id", "timestamp")
_RESERVED_TYPES = ("artifact", "budget.warning", "input.requested", "input.received")
_data_bytes = MAX_DATA_BYTES  # less where the installation or a plan allows less
_ALLOWED = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")


def limit_events(max_bytes: int) -> None:
    """Cut events at `max_bytes` from now on, if that is less. Called once, by `crew`."""
    global _data_bytes
    _data_bytes = min(MAX_DATA_BYTES, max_bytes - _FRAME_BYTES)


def emit(type: str, /, **data: object) -> None:
    """Add an event to the run: `emit("progress", done=3, of=10)`.

    Converts any value to JSON and cuts data above 64 KiB, or above a lower limit of the run, with a mark.
    Does nothing outside a run, so a crew also works there. Safe in threads and forked processes. Raises
    ValueError for an invalid type, a type that the service emits (`artifact`, `run.*`), and the keys `run_id`
    and `timestamp`.
    """
    check(type, data)
    if channel.is_open():
        channel.write(channel_line(type, data))


def report(type: str, data: dict[str, object]) -> None:
    """Emit an event of a framework; never raises, since the crew did not call it."""
    try:
        if channel.is_open():
            channel.write(
                channel_line(type, {key: truncate(value) for key, value in data.items()}, in_use=True)
            )
    except Exception:  # a value that cannot be read
        return


def error_text(error: BaseException) -> str:
    """Return the exception as the text of an event."""
    try:
        message = str(error)
    except Exception:  # a __str__ that fails
        message = ""
    return f"{type(error).__name__}: {message}" if message else type(error).__name__


def check(type: object, data: dict[str, object]) -> None:
    """Raise ValueError as `emit` does."""
    if not isinstance(type, str) or not 0 < len(type) <= 64 or not set(type) <= _ALLOWED:
        raise ValueError(
            f"emit: {type!r} is not an event type; use up to 64 letters, digits and . _ - as in 'report.done'"
        )
    if type in _RESERVED_TYPES or type.startswith("run."):
        own = type.partition(".")[2] or "progress"
        hint = (
            "write the file into the artifacts directory and the service emits it"
            if type == "artifact"
            else f"the service emits these; choose a name of your own, such as {own!r}"
        )
        raise ValueError(f"emit: the type {type!r} is reserved: {hint}")
    for key in _RESERVED:
        if key in data:
            raise ValueError(
                f"emit: the key {key!r} is reserved: the service sets it; call yours {'my_' + key!r}"
            )


def channel_line(type: str, data: dict[str, object], in_use: bool = False) -> bytes:
    """Return the event as a line of the channel. `in_use`: do not consume data that the crew still uses."""
    fitting = fit(data, _data_bytes, in_use)
    return json.dumps({"event": {"type": type, "data": fitting}}, ensure_ascii=False).encode()


def fit(data: dict[str, object], max_bytes: int, in_use: bool = False) -> dict[str, object]:
    """Return the data as JSON values of at most `max_bytes`: cut the largest values, then drop fields.

    Pure with `in_use`; otherwise consumes generators.
    """
    value = json_safe(data, _MAX_ITEMS, in_use)
    fields: dict[str, object] = value if isinstance(value, dict) else {}
    sizes = {key: _size(key) + _size(item) + 4 for key, item in fields.items()}
    total = sum(sizes.values()) + 2
    for key in sorted(sizes, key=lambda key: -sizes[key]):
        if total <= max_bytes or sizes[key] <= _MIN_CUT_BYTES:
            break
        total -= sizes[key]
        fields[key] = _cut(fields[key], max(max_bytes - total - _size(key) - 4, _MIN_CUT_BYTES // 4))
        sizes[key] = _size(key) + _size(fields[key]) + 4
        total += sizes[key]
    for key in reversed(list(sizes)):
        if total <= max_bytes:
            break
        total -= sizes[key]
        del fields[key]
    return fields


def truncate(value: object) -> object:
    """Drop parts of the value that cannot fit, so a large state does not slow down every step. Pure."""
    return _truncate(value, 0, [_MAX_ITEMS])


def _truncate(value: object, depth: int, items_left: list[int]) -> object:
    """`left[0]` is the number of items still allowed in one value, nested ones included."""
    kind = type(value)
    if kind is str or kind is bytes:
        return value[: MAX_DATA_BYTES + 1]  # type: ignore[index]
    if depth >= _MAX_TRUNCATE_DEPTH or kind not in (dict, list, tuple):
        return value
    if kind is dict:
        fields: dict[object, object] = {}
        # Copied in one step: another thread of the crew may be changing it.
        for key, item in list(islice(value.items(), max(0, items_left[0]))):  # type: ignore[attr-defined]
            items_left[0] -= 1
            fields[key] = _truncate(item, depth + 1, items_left)
            if items_left[0] <= 0:
                break
        return fields
    items: list[object] = []
    for item in list(islice(value, max(0, items_left[0]))):  # type: ignore[call-overload]
        items_left[0] -= 1
        items.append(_truncate(item, depth + 1, items_left))
        if items_left[0] <= 0:
            break
    more = len(value) - len(items)  # type: ignore[arg-type]
    return [*items, f"… {more} more"] if more else items


def _cut(value: object, max_bytes: int) -> str:
    """Return the start of the value's text with the mark, at most `max_bytes` as JSON."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    room = max_bytes - _size(CUT_MARK)
    while text and _size(text) > room:
        # A character takes one to six bytes in JSON: cut in proportion to the actual size.
        text = text[: min(len(text) * max(room, 0) // _size(text), len(text) - 1)]
    return text + CUT_MARK


def _size(value: object) -> int:
    return len(json.dumps(value, ensure_ascii=False).encode())
