"""Schedules of a Project as JSON, and changed lists of them."""

import pytest

from api.v1.schedules import view

DAILY = {"name": "daily", "cron": "0 7 * * *"}
WHOLE = {
    "name": "weekdays",
    "cron": "0 7 * * MON-FRI",
    "timeZone": "Europe/Berlin",
    "input": {"aTopic": "tides"},
    "entrypoint": "writer",
    "labels": {"team": "tides"},
    "concurrencyPolicy": "Forbid",
    "startingDeadline": "10m",
    "suspend": True,
}
STATE = {
    "name": "weekdays",
    "expression": "0 7 * * MON-FRI Europe/Berlin",
    "lastTime": "2026-11-20T06:00:00Z",
    "lastRun": "run-weekdays-1",
    "nextTime": "2026-11-23T06:00:00Z",
    "message": "a run of it is active",
}
DAILY_SHOWN = {
    "name": "daily",
    "cron": "0 7 * * *",
    "time_zone": "UTC",
    "input": None,
    "entrypoint": None,
    "labels": None,
    "concurrency_policy": "Allow",
    "starting_deadline": None,
    "suspend": False,
    "last_time": None,
    "last_run_id": None,
    "next_time": None,
    "message": None,
}
WHOLE_SHOWN = {
    "name": "weekdays",
    "cron": "0 7 * * MON-FRI",
    "time_zone": "Europe/Berlin",
    "input": {"aTopic": "tides"},
    "entrypoint": "writer",
    "labels": {"team": "tides"},
    "concurrency_policy": "Forbid",
    "starting_deadline": "10m",
    "suspend": True,
    "last_time": "2026-11-20T06:00:00Z",
    "last_run_id": "run_weekdays-1",
    "next_time": "2026-11-23T06:00:00Z",
    "message": "a run of it is active",
}


def test_schedules_are_shown_in_order_with_their_state():
    status = {"schedules": [{"name": "removed"}, STATE]}
    assert view.items({"schedules": [WHOLE, DAILY]}, status) == [WHOLE_SHOWN, DAILY_SHOWN]
    assert view.items({"schedules": [DAILY]}, {}) == [DAILY_SHOWN]
    assert view.items({}, status) == []


def test_changed_schedule_has_no_next_time_yet():
    assert view.item({**WHOLE, "timeZone": "Asia/Tokyo"}, STATE) == {
        **WHOLE_SHOWN,
        "time_zone": "Asia/Tokyo",
        "next_time": None,
    }


def test_body_of_a_request_becomes_a_schedule():
    body = {
        "cron": "0 7 * * MON-FRI",
        "time_zone": "Europe/Berlin",
        "input": {"aTopic": "tides"},
        "entrypoint": "writer",
        "labels": {"team": "tides"},
        "concurrency_policy": "Forbid",
        "starting_deadline": "10m",
        "suspend": True,
    }
    assert view.to_spec("weekdays", body) == WHOLE


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ([], [DAILY]),
        ([WHOLE], [WHOLE, DAILY]),
        ([{**DAILY, "suspend": True}, WHOLE], [DAILY, WHOLE]),
    ],
)
def test_schedule_is_replaced_in_place_or_added(before, after):
    assert view.with_schedule(before, DAILY) == after
    assert view.without(after, "daily") == [one for one in before if one["name"] != "daily"]
