"""Timestamps in the format of Kubernetes and the API (RFC 3339, UTC)."""

from datetime import UTC, datetime


def format_time(moment: datetime) -> str:
    """Format as `2026-11-21T10:00:00.123456Z`; whole seconds without a fraction."""
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")


def format_second(moment: datetime) -> str:
    """Format as `2026-11-21T10:00:00Z`, the form of metav1.Time."""
    return format_time(moment.replace(microsecond=0))


def parse_time(text: str) -> datetime:
    """Parse an RFC 3339 text with a zone. Raises ValueError for anything else."""
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError(f"{text!r} has no time zone; append Z for UTC")
    try:
        return moment.astimezone(UTC)
    except OverflowError:
        raise ValueError(f"{text!r} is outside the years 1 to 9999 in UTC") from None
