"""Range and If-None-Match headers of a download. Pure. Called by the routes of files."""

import re
from typing import NamedTuple

_SINGLE_RANGE = re.compile(r"bytes=(?:([0-9]{1,18})-([0-9]{1,18})?|-([0-9]{1,18}))", re.ASCII | re.IGNORECASE)


class ByteRange(NamedTuple):
    """The bytes from `start` (inclusive) to `end` (exclusive)."""

    start: int
    end: int


class RangeNotSatisfiable(Exception):
    """The range lies beyond the file."""


def parse_range(header: str | None, size: int) -> ByteRange | None:
    """Return the requested range; None for the whole file, also for unsupported or malformed ranges.

    Raises RangeNotSatisfiable.
    """
    match = _SINGLE_RANGE.fullmatch(header.replace(" ", "")) if header else None
    if match is None:
        return None
    first, last, suffix = match.groups()
    if suffix is not None:
        if int(suffix) == 0 or size == 0:
            raise RangeNotSatisfiable
        return ByteRange(max(0, size - int(suffix)), size)
    start = int(first)
    if last is not None and int(last) < start:
        return None
    if start >= size:
        raise RangeNotSatisfiable
    return ByteRange(start, size if last is None else min(int(last) + 1, size))


def etag_matches(header: str | None, etag: str) -> bool:
    """Return whether If-None-Match matches `etag`; weak comparison, as for GET."""
    if header is None:
        return False
    return header.strip() == "*" or etag in [tag.strip().removeprefix("W/") for tag in header.split(",")]
