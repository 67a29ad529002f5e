"""What an attempt to deliver changes. Pure. Called by `api.notifications.dispatcher`."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from api.outbound.backoff import backoff_seconds
from api.store.index.notifications.deliveries import DeliveryRow, DeliveryUpdate
from api.store.index.notifications.outbox import DELIVERED, FAILED, PENDING

MAX_BACKOFF_SECONDS = 1800.0
MAX_ERROR_CHARACTERS = 500


@dataclass(frozen=True)
class Attempt:
    """The result of an attempt; `error` None: the receiver took it.

    `final`: no repetition helps, and it is not the receiver's fault.
    """

    response_status: int | None = None
    error: str | None = None
    final: bool = False


def decide(row: DeliveryRow, attempt: Attempt, now: datetime, random: float) -> DeliveryUpdate:
    """Return what the attempt changes: delivered, to be repeated, or given up."""
    attempts = row.attempts + 1
    next_at = now + timedelta(seconds=backoff_seconds(attempts, MAX_BACKOFF_SECONDS, random))
    if attempt.error is None:
        status, failing = DELIVERED, False
    elif attempt.final:
        status, failing = FAILED, None
    elif next_at >= row.expires_at:
        status, failing = FAILED, True
    else:
        status, failing = PENDING, None
    return DeliveryUpdate(
        status=status,
        attempts=attempts,
        next_at=next_at if status == PENDING else row.next_at,
        completed_at=None if status == PENDING else now,
        response_status=attempt.response_status,
        error=attempt.error and attempt.error[:MAX_ERROR_CHARACTERS],
        failing=failing,
    )
