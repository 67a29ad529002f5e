"""Delivery rows as JSON. Pure. Called by the routes of deliveries."""

from typing import Any

from api.store.index.notifications.deliveries import DeliveryRow
from api.store.index.notifications.outbox import PENDING
from api.v1.timestamps import timestamp
from crds import names


def item(row: DeliveryRow) -> dict[str, Any]:
    """Return a delivery."""
    return {
        "id": row.id,
        "notification": row.notification,
        "type": row.type,
        "object_id": names.id_of(row.object),
        "status": row.status,
        "attempts": row.attempts,
        "created_at": timestamp(row.created_at),
        "next_attempt_at": timestamp(row.next_at) if row.status == PENDING else None,
        "completed_at": timestamp(row.completed_at),
        "response_status": row.response_status,
        "error": row.error,
    }
