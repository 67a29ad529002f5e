"""Moments as the API writes them. Pure."""

from datetime import datetime

from crds.times import format_time


def moment(at: datetime | None) -> str | None:
    """`2026-11-21T10:00:00.123456Z`, or null for what has not happened."""
    return None if at is None else format_time(at)
