"""Deliveries of events as JSON."""

from datetime import timedelta

import pytest

from api.store.index.notifications.deliveries import DeliveryRow
from api.v1.deliveries import view
from tests.unit.api.conftest import NOW


@pytest.mark.parametrize(
    ("fields", "shown"),
    [
        (
            {"status": "pending", "completed_at": None, "response_status": None, "error": None},
            {"next_attempt_at": "2026-11-21T10:01:00Z", "completed_at": None},
        ),
        (
            {"status": "failed", "completed_at": NOW, "response_status": 500, "error": "refused"},
            {"next_attempt_at": None, "completed_at": "2026-11-21T10:00:00Z"},
        ),
    ],
)
def test_delivery_has_its_next_attempt_while_it_is_pending(fields, shown):
    row = DeliveryRow(
        id="msg_1",
        project="demo",
        project_uid="uid-demo",
        notification="chat",
        type="run.failed",
        object="run-a-b",
        event_time=NOW - timedelta(seconds=2),
        created_at=NOW - timedelta(seconds=1),
        attempts=3,
        next_at=NOW + timedelta(minutes=1),
        expires_at=NOW + timedelta(days=1),
        **fields,
    )
    assert view.item(row) == {
        "id": "msg_1",
        "notification": "chat",
        "type": "run.failed",
        "object_id": "run_a-b",
        "status": fields["status"],
        "attempts": 3,
        "created_at": "2026-11-21T09:59:59Z",
        "response_status": fields["response_status"],
        "error": fields["error"],
        **shown,
    }
