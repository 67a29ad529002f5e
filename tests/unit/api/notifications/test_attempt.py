"""Back-off of deliveries, and when they are given up."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from api.notifications.attempt import MAX_BACKOFF_SECONDS, Attempt, decide
from api.outbound.backoff import JITTER_RATIO, backoff_seconds
from api.store.index.notifications.deliveries import DeliveryRow
from api.store.index.notifications.outbox import GIVE_UP_AFTER, ProjectEvent, receivers

NOW = datetime(2026, 11, 21, 10, tzinfo=UTC)


def row(attempts: int = 0, age: timedelta = timedelta(0)) -> DeliveryRow:
    created = NOW - age
    return DeliveryRow(
        id="msg_a",
        project="demo",
        project_uid="project-1",
        notification="chat",
        type="run.failed",
        object="run-a",
        event_time=created,
        created_at=created,
        status="pending",
        attempts=attempts,
        next_at=NOW,
        expires_at=created + GIVE_UP_AFTER,
        completed_at=None,
        response_status=None,
        error=None,
    )


def test_a_delivery_that_the_receiver_takes_is_complete():
    change = decide(row(attempts=3), Attempt(204), NOW, 0.5)
    assert (change.status, change.attempts, change.completed_at) == ("delivered", 4, NOW)
    assert (change.response_status, change.error, change.failing) == (204, None, False)


def test_a_failed_attempt_is_repeated_with_growing_delays():
    delays = []
    for attempts in range(12):
        change = decide(row(attempts), Attempt(503, "status 503"), NOW, 0.5)
        assert (change.status, change.completed_at, change.failing) == ("pending", None, None)
        delays.append((change.next_at - NOW).total_seconds())
    assert delays[:4] == [5, 10, 20, 40]
    assert delays == sorted(delays) and delays[-1] == MAX_BACKOFF_SECONDS


@given(st.integers(1, 10**6), st.floats(0, 1))
def test_a_delay_is_bounded_and_spread(attempts, random):
    delay = backoff_seconds(attempts, MAX_BACKOFF_SECONDS, random)
    base = backoff_seconds(attempts, MAX_BACKOFF_SECONDS, 0.5)
    assert (
        base * (1 - JITTER_RATIO)
        <= delay
        <= base * (1 + JITTER_RATIO)
        <= MAX_BACKOFF_SECONDS * (1 + JITTER_RATIO)
    )


def test_a_delivery_is_given_up_after_24_hours_and_its_receiver_is_failing():
    change = decide(row(60, GIVE_UP_AFTER - timedelta(seconds=60)), Attempt(None, "refused"), NOW, 0.5)
    assert (change.status, change.completed_at, change.failing) == ("failed", NOW, True)


def test_24_hours_need_a_bounded_number_of_attempts():
    attempts, now, state = 0, NOW, row()
    while state.status == "pending":
        change = decide(state, Attempt(500, "status 500"), now, 0.0)
        attempts, now = attempts + 1, change.next_at
        state = DeliveryRow(**{**vars(state), "status": change.status, "attempts": change.attempts})
    assert 24 <= attempts <= 80
    assert now <= NOW + GIVE_UP_AFTER


def test_an_event_without_object_or_notification_ends_without_blame():
    change = decide(row(), Attempt(error="the project has no notification chat any more", final=True), NOW, 0)
    assert (change.status, change.failing) == ("failed", None)


@pytest.mark.parametrize(
    ("event", "age", "names"),
    [
        ("run.failed", timedelta(0), ("chat", "pager")),
        ("run.succeeded", timedelta(0), ("chat",)),
        ("run.waiting", timedelta(0), ()),
        ("run.failed", GIVE_UP_AFTER + timedelta(seconds=1), ()),
    ],
)
def test_receivers_of_an_event(event, age, names):
    notifications = [
        {"name": "chat", "events": ["run.failed", "run.succeeded"]},
        {"name": "pager", "events": ["run.failed"]},
    ]
    assert receivers(notifications, ProjectEvent(event, "run-a", NOW - age), NOW) == names
    assert receivers(None, ProjectEvent(event, "run-a", NOW), NOW) == ()
