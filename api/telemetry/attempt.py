"""What the response to an export means. Pure. Called by `exporter`."""

from dataclasses import dataclass
from datetime import datetime
from email.utils import parsedate_to_datetime
from enum import StrEnum

from api.outbound.backoff import backoff_seconds

MAX_BACKOFF_SECONDS = 300.0
MAX_RETRY_AFTER_SECONDS = 3600.0
_REPEATED = (401, 403, 404, 408, 429, 502, 503, 504)
"""Those that OTLP repeats, and those of a wrong setting, which an operator may correct."""


class ExportResult(StrEnum):
    """What became of an attempt; a run or build that is `retried` waits, the others are done with."""

    EXPORTED = "exported"
    RETRIED = "retried"
    REJECTED = "rejected"
    EXPIRED = "expired"


@dataclass(frozen=True)
class ExportAttempt:
    """The result of an attempt. `retry_after`: seconds that the receiver asks for."""

    result: ExportResult
    problem: str = ""
    retry_after: float | None = None


def of_status(status: int, problem: str | None, retry_after: str, now: datetime) -> ExportAttempt:
    """Return what a response means: a redirect is a wrong setting too."""
    if problem is None:
        return ExportAttempt(ExportResult.EXPORTED)
    if status in _REPEATED or 300 <= status < 400:
        return ExportAttempt(ExportResult.RETRIED, problem, retry_after_seconds(retry_after, now))
    return ExportAttempt(ExportResult.REJECTED, problem)


def retry_after_seconds(text: str, now: datetime) -> float | None:
    """Return the seconds of a header Retry-After, a number or a date, at most an hour; None without one."""
    text = text.strip()
    if text.isascii() and text.isdecimal():
        seconds = float(text[:9])
    else:
        try:
            seconds = (parsedate_to_datetime(text) - now).total_seconds()
        except (ValueError, TypeError):
            return None
    return min(max(0.0, seconds), MAX_RETRY_AFTER_SECONDS)


def pause_seconds(failures: int, retry_after: float | None, random: float) -> float:
    """Return the pause after this many failures in a row; `random` from 0 to 1 spreads it."""
    return max(backoff_seconds(failures, MAX_BACKOFF_SECONDS, random), retry_after or 0.0)
