"""Runs as JSON, from their rows."""

from dataclasses import replace
from datetime import timedelta
from decimal import Decimal

import pytest

from api.prices import Prices
from api.store.index.runs.input_requests import InputRequest
from api.v1.runs import view
from crds import names
from tests.unit.api.telemetry.trace_rows import CREATED, at, run_row

URL, DOCS = "https://crews.example", "https://docs.example"
LISTED = {
    "id": "run_a",
    "deployment_id": "dep_a",
    "project": "demo",
    "status": "succeeded",
    "created_at": "2026-11-21T10:00:00.250000Z",
    "completed_at": "2026-11-21T10:01:05Z",
    "duration_ms": 60_000,
    "labels": {"team": "tides"},
    "usage": None,
}
RUNNING = {
    **LISTED,
    "status": "running",
    "started_at": "2026-11-21T10:00:05.250000Z",
    "trace_id": "af3e3ed8a4a8d5b0e5a0a1a4f4f36b0c",
    "input": {"topic": "tides"},
    "events_url": f"{URL}/v1/runs/run_a/events",
    "created_by": "key:k1",
    "entrypoint": "report",
    "timeout": "5m",
    "rerun_of": None,
}
TRACE = RUNNING["trace_id"]
QUEUED = {"reason": "Queued", "message": "No free slot.", "since": "2026-11-21T10:00:02Z"}
QUESTION = InputRequest(
    run="run-a",
    id="q1",
    prompt="Which way?",
    schema={"type": "string"},
    choices=["up", "down"],
    created_at=at(7),
    expires_at=at(67),
    answer=None,
    answered_at=None,
    answered_by=None,
    refusal=None,
    closed=False,
)
LATER = replace(QUESTION, id="q2", prompt="How far?", created_at=at(8))
ASKED = {
    "request_id": "q1",
    "prompt": "Which way?",
    "schema": {"type": "string"},
    "choices": ["up", "down"],
    "created_at": "2026-11-21T10:00:07.250000Z",
    "expires_at": "2026-11-21T10:01:07.250000Z",
}


def row(**fields):
    """Return the row of a run that has its own entrypoint and timeout and belongs to a trace."""
    own = {"created_by": "key:k1", "entrypoint": "report", "timeout": "5m"}
    return run_row(**{**own, "traceparent": f"00-{TRACE}-b7ad6b7169203331-01", **fields})


@pytest.mark.parametrize(
    ("fields", "shown"),
    [
        ({}, {}),
        ({"deployment": None, "labels": None}, {"deployment_id": None, "labels": {}}),
        ({"completed_at": None, "duration_ms": None}, {"completed_at": None, "duration_ms": None}),
    ],
)
def test_run_in_a_list(fields, shown):
    assert view.item(row(**fields), None) == {**LISTED, **shown}


def test_only_a_smoke_run_is_marked_as_one():
    name = names.smoke_run("uid-d")
    assert view.item(row(name=name), None) == {**LISTED, "id": names.id_of(name), "smoke": True}


def test_usage_is_shown_with_its_cost_once_it_is_accounted():
    used = {"prompt_tokens": 2000, "completion_tokens": 0, "artifact_bytes": 7}
    prices = Prices("EUR", {"per_run": Decimal("0.5"), "per_million_prompt_tokens": Decimal(250)})
    priced, unpriced = {"cost": 1.0, "currency": "EUR"}, {"cost": None, "currency": None}
    assert view.item(row(**used), prices)["usage"] == {**used, **priced, "models": {}}
    assert view.item(row(**used), None)["usage"] == {**used, **unpriced, "models": {}}
    assert view.detail(row(**used), URL, prices)["usage"] == {**used, **priced, "models": {}}
    assert view.item(row(), prices)["usage"] is None


def test_usage_has_the_models_with_most_tokens_first():
    tokens = {"b": [1, 1], "a": [1, 1], "small": [1, 0], "large": [0, 2000]}
    prices = Prices("EUR", {}, {"large": {"per_million_completion_tokens": Decimal(250)}})
    used = row(prompt_tokens=3, completion_tokens=2002, artifact_bytes=0, model_tokens=tokens)
    usage = view.usage(used, prices)
    assert list(usage["models"]) == ["large", "a", "b", "small"]
    assert usage["models"]["large"] == {"prompt_tokens": 0, "completion_tokens": 2000, "cost": 0.5}
    assert (usage["models"]["a"]["cost"], usage["cost"]) == (None, 0.5)


@pytest.mark.parametrize(
    ("fields", "shown"),
    [
        ({}, {}),
        # The object names an input that the API never received.
        ({"input": None}, {"input": {}}),
        # The object is not created yet.
        ({"uid": None}, {"trace_id": None}),
    ],
)
def test_response_to_a_new_run(fields, shown):
    keys = (
        "id",
        "status",
        "created_at",
        "deployment_id",
        "project",
        "labels",
        "trace_id",
        "input",
        "events_url",
    )
    expected = {key: RUNNING[key] for key in keys}
    assert view.created(row(status="running", **fields), URL) == {**expected, **shown}


def test_run_without_a_caller_has_a_trace_of_its_own():
    own = view.created(row(traceparent=None), URL)["trace_id"]
    assert len(own) == 32 and own not in (
        TRACE,
        view.created(row(traceparent=None, uid="uid-2"), URL)["trace_id"],
    )


@pytest.mark.parametrize(
    ("fields", "more", "shown"),
    [
        ({"status": "running"}, {}, {}),
        ({"status": "running", "started_at": None}, {}, {"started_at": None}),
        ({"status": "running", "rerun_of": "run-b-1"}, {}, {"rerun_of": "run_b-1"}),
        # A run tells why it waits until it starts, and while it asks.
        ({"status": "pending", "waiting": QUEUED}, {}, {"waiting": QUEUED}),
        (
            {"status": "pending", "waiting": QUEUED},
            {"position": 3},
            {"queue_position": 3, "waiting": {**QUEUED, "message": "No free slot. Position 3."}},
        ),
        (
            {"status": "pending", "waiting": {**QUEUED, "since": "1970-01-01T00:00:00Z"}},
            {},
            {"waiting": {**QUEUED, "since": LISTED["created_at"]}},
        ),
        ({"status": "pending"}, {"questions": [QUESTION]}, {}),
        ({"status": "running", "waiting": QUEUED}, {}, {}),
        (
            {"status": "running"},
            {"questions": [QUESTION, LATER]},
            {
                "waiting": {
                    "reason": "WaitingForInput",
                    "message": "The crew asks: Which way?",
                    "since": ASKED["created_at"],
                },
                "input_requests": [
                    ASKED,
                    {
                        **ASKED,
                        "request_id": "q2",
                        "prompt": "How far?",
                        "created_at": "2026-11-21T10:00:08.250000Z",
                    },
                ],
            },
        ),
        ({"status": "running", "cancel": True}, {}, {"cancel_requested": True}),
        ({"status": "canceled", "cancel": True}, {}, {}),
        ({"status": "succeeded"}, {}, {"output": {"report": "Two a day."}}),
        (
            {"status": "failed", "error": {"reason": "OOMKilled", "message": "m", "more": 1}},
            {},
            {"error": {"reason": "OOMKilled", "message": "m"}},
        ),
        (
            {"status": "failed", "error": {"reason": "OOMKilled", "message": "m"}},
            {"docs_url": DOCS},
            {
                "error": {
                    "reason": "OOMKilled",
                    "message": "m",
                    "docs_url": f"{DOCS}/troubleshooting.html#oomkilled",
                }
            },
        ),
        ({"status": "failed"}, {"docs_url": DOCS}, {"error": {"reason": None, "message": None}}),
    ],
)
def test_run_with_all_fields(fields, more, shown):
    expected = {**RUNNING, "status": fields["status"], **shown}
    assert view.detail(row(**fields), URL, None, **more) == expected


def test_a_question_without_schema_and_choices_shows_neither():
    plain = replace(QUESTION, schema=None, choices=None)
    assert view.input_request(plain) == {
        "request_id": "q1",
        "prompt": "Which way?",
        "created_at": ASKED["created_at"],
        "expires_at": ASKED["expires_at"],
    }


def test_response_to_an_answer():
    now = CREATED + timedelta(seconds=9)
    shown = {"request_id": "q1", "received_at": "2026-11-21T10:00:09.250000Z", "by": "k1"}
    assert view.answered(QUESTION, now, "k1") == shown
