"""`emit`: an event of the crew's own among the events of its run. Called by crews."""

from __future__ import annotations

import json

from . import channel
from .jsonsafe import safe

LARGEST = 64 * 1024 - 512  # bytes of the data; the rest of an event's 64 KiB is its frame
MARK = "… [cut]"
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
    while total > most and sizes:
        key = max(sizes, key=lambda one: sizes[one])
        item = fields[key]
        text = item if isinstance(item, str) else json.dumps(item, ensure_ascii=False)
        total -= sizes[key]
        room = max(most - total - _size(key) - 64, sizes[key] // 8)
        if sizes[key] <= 256:
            del fields[key], sizes[key]
            continue
        # A character takes up to six bytes in JSON: cut by what it really takes.
        share = room / max(1, _size(text))
        fields[key] = text[: int(len(text) * min(share, 0.9))].removesuffix(MARK) + MARK
        sizes[key] = _size(key) + _size(fields[key]) + 4
        total += sizes[key]
    return fields


def _size(value: object) -> int:
    return len(json.dumps(value, ensure_ascii=False).encode())
