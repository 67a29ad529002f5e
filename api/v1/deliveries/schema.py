"""JSON Schemas and examples of deliveries. Pure. Names and events are read from the CRD."""

from typing import Any

from api.store.index.notifications.deliveries import STATUSES
from api.v1.fields import (
    COUNT,
    CREATED_AT,
    EXAMPLE_RUN_ID,
    EXAMPLE_TIMESTAMP,
    TEXT,
    TIMESTAMP,
    Schema,
    described,
    nullable,
    response_object,
)
from crds import schema
from crds.kinds import PROJECT

_FIELDS = schema.openapi(PROJECT)["properties"]["spec"]["properties"]["notifications"]["items"]["properties"]

ID: Schema = {
    "title": "DeliveryId",
    "type": "string",
    "pattern": "^msg_[a-z0-9]+$",
    "maxLength": 52,
    "description": "A delivery's id, the header webhook-id of its message, for example msg_ab12.",
}
ITEM = response_object(
    "NotificationDelivery",
    {
        "id": ID,
        "notification": described(TEXT, "The name of the notification in the project."),
        "type": {
            "type": "string",
            "enum": _FIELDS["events"]["items"]["enum"],
            "description": "The event.",
        },
        "object_id": described(TEXT, "The id of the run or the deployment."),
        "status": {
            "type": "string",
            "enum": list(STATUSES),
            "description": "Whether the receiver took it; failed after 24 hours of attempts.",
        },
        "attempts": described(COUNT, "How often it was sent, since the last redelivery."),
        "created_at": CREATED_AT,
        "next_attempt_at": described(nullable(TIMESTAMP), "The time of the next attempt while pending."),
        "completed_at": described(nullable(TIMESTAMP), "When it was delivered, or given up."),
        "response_status": {
            "type": ["integer", "null"],
            "description": "The HTTP status of the last response; null if there was none.",
        },
        "error": described(nullable(TEXT), "Why the last attempt failed; null if it did not."),
    },
)
EXAMPLE_ID = "msg_ab12"
EXAMPLE: dict[str, Any] = {
    "id": EXAMPLE_ID,
    "notification": "team-chat",
    "type": "run.failed",
    "object_id": EXAMPLE_RUN_ID,
    "status": "pending",
    "attempts": 1,
    "created_at": EXAMPLE_TIMESTAMP,
    "next_attempt_at": "2026-11-21T10:00:05.000000Z",
    "completed_at": None,
    "response_status": 503,
    "error": "hooks.example.com responded with status 503",
}
