"""Timestamps as the API writes them. Pure. Called by the views."""

from datetime import datetime

from crds.times import format_time


def timestamp(time: datetime | None) -> str | None:
    """Return a time as `2026-11-21T10:00:00.123456Z`, or None if it is not set."""
    return None if time is None else format_time(time)
