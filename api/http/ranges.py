"""The Range and If-None-Match headers of a download. Pure. Called by the routes of artifacts."""

import re
from typing import NamedTuple

_ONE = re.compile(r"bytes=(?:([0-9]{1,18})-([0-9]{1,18})?|-([0-9]{1,18}))", re.ASCII | re.IGNORECASE)


class Span(NamedTuple):
    """The bytes from `start` up to, not including, `end`."""

    start: int
    end: int


class Unsatisfiable(Exception):
    """The range lies beyond the file."""


def span(header: str | None, size: int) -> Span | None:
    """The part that is asked for; None for the whole, also for forms not served (several ranges, nonsense).

    Raises Unsatisfiable.
    """
    found = _ONE.fullmatch(header.replace(" ", "")) if header else None
    if found is None:
        return None
    first, last, suffix = found.groups()
    if suffix is not None:
        if int(suffix) == 0 or size == 0:
            raise Unsatisfiable
        return Span(max(0, size - int(suffix)), size)
    start = int(first)
    if last is not None and int(last) < start:
        return None
    if start >= size:
        raise Unsatisfiable
    return Span(start, size if last is None else min(int(last) + 1, size))


def matches(header: str | None, etag: str) -> bool:
    """Whether If-None-Match names what the caller would get; weak comparison, as for GET."""
    if header is None:
        return False
    return header.strip() == "*" or etag in [tag.strip().removeprefix("W/") for tag in header.split(",")]
