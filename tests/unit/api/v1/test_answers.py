"""Answers to questions of runs, through the API."""

from datetime import timedelta

import pytest

from api.questions.answers import apply_object_answers
from api.store.index.runs.input_requests import Question
from crds.objects import Run

SCHEMA = {"type": "object", "required": ["go"], "properties": {"go": {"type": "boolean"}}}


@pytest.fixture
async def run(testbed):
    """A running run with two questions."""
    await testbed.add_project("crew", activeDeployment="dep-a", activatedAt="2026-11-21T10:00:00Z")
    await testbed.add_deployment("dep-a", "crew")
    raw = await testbed.add_run("run-a", "crew")
    await testbed.claim_run(raw)
    now = testbed.clock[0]
    for question in (Question("q1", "Go on?", SCHEMA, None), Question("q2", "Which?", None, ["a", "b"])):
        await testbed.store.input_requests.open("run-a", question, now, now + timedelta(hours=1))
    return raw


async def answer(testbed, value, request="q1", run="run_a", **more):
    status, body, _ = await testbed.call("POST", f"/v1/runs/{run}/inputs/{request}", {"value": value}, **more)
    return status, body


async def test_a_run_shows_its_open_questions(testbed, run):
    shown = (await testbed.get("/v1/runs/run_a"))["data"]
    assert shown["status"] == "running"
    assert shown["waiting"] == {
        "reason": "WaitingForInput",
        "message": "The crew asks: Go on?",
        "since": "2026-11-21T10:00:00Z",
    }
    first, second = shown["input_requests"]
    assert first == {
        "request_id": "q1",
        "prompt": "Go on?",
        "schema": SCHEMA,
        "created_at": "2026-11-21T10:00:00Z",
        "expires_at": "2026-11-21T11:00:00Z",
    }
    assert (second["request_id"], second["choices"]) == ("q2", ["a", "b"])


async def test_an_answer_closes_the_question_and_a_second_one_gets_a_409(testbed, run):
    bearer = testbed.create_key("run", projects=["crew"])
    status, body = await answer(testbed, {"go": True}, bearer=bearer)
    assert status == 200 and body["data"]["request_id"] == "q1"
    stored = await testbed.store.input_requests.get("run-a", "q1")
    assert (stored.answer, stored.answered_by) == ({"value": {"go": True}}, body["data"]["by"])
    status, body = await answer(testbed, {"go": False})
    assert status == 409 and "already answered" in body["error"]["message"]
    shown = (await testbed.get("/v1/runs/run_a"))["data"]
    assert [item["request_id"] for item in shown["input_requests"]] == ["q2"]
    await answer(testbed, "a", "q2")
    shown = (await testbed.get("/v1/runs/run_a"))["data"]
    assert "input_requests" not in shown and "waiting" not in shown


@pytest.mark.parametrize(
    ("value", "request_id", "field"),
    [({}, "q1", "value.go"), ({"go": "yes"}, "q1", "value.go"), ("yes", "q1", "value"), ("c", "q2", "value")],
)
async def test_an_answer_that_does_not_fit_gets_a_400_and_changes_nothing(
    testbed, run, value, request_id, field
):
    status, body = await answer(testbed, value, request_id)
    assert (status, body["error"]["details"]["field"]) == (400, field)
    assert len((await testbed.get("/v1/runs/run_a"))["data"]["input_requests"]) == 2


async def test_unknown_questions_expired_ones_and_ended_runs(testbed, run):
    assert (await answer(testbed, 1, "q9"))[0] == 404
    assert (await answer(testbed, 1, run="run_b"))[0] == 404
    testbed.clock[0] += timedelta(hours=2)
    status, body = await answer(testbed, {"go": True})
    assert status == 409 and "no longer waits" in body["error"]["message"]
    await testbed.finish_run(run, "Succeeded", result={"output": "1"}, durationMs=1)
    status, body = await answer(testbed, "a", "q2")
    assert (status, body["error"]["details"]) == (409, {"status": "succeeded"})


async def test_only_the_scope_run_of_the_project_may_answer(testbed, run):
    assert (await answer(testbed, {"go": True}, bearer=testbed.create_key("read")))[0] == 403
    other = testbed.create_key("run", projects=["other"])
    assert (await answer(testbed, {"go": True}, bearer=other))[0] == 404


async def test_an_answer_of_1_mib_fits_and_a_larger_one_does_not(testbed, run):
    now = testbed.clock[0]
    question = Question("q3", "Text?", {"type": "string"}, None)
    await testbed.store.input_requests.open("run-a", question, now, now + timedelta(hours=1))
    mebibyte = 1024 * 1024
    assert (await answer(testbed, "x" * mebibyte, "q3"))[0] == 413
    assert (await answer(testbed, "я" * (mebibyte // 2 - 1), "q3"))[0] == 200


async def test_refused_answers_of_an_object_are_written_once(testbed, run):
    """The delivery of a refusal changes the object, which is then applied again."""
    requests = testbed.store.input_requests
    await requests.mark_written("run-a", await requests.unanswered("run-a"))
    given = [{"request": "q1", "value": {}}, {"request": "q1", "value": {"go": 1}}]
    item = Run({**run, "spec": {**run["spec"], "answers": given}})
    await apply_object_answers(testbed.store, item, testbed.clock[0])
    assert await requests.unwritten(10) == ("run-a",)
    refusal = (await requests.get("run-a", "q1")).refusal
    assert refusal
    await requests.mark_written("run-a", await requests.unanswered("run-a"))
    await apply_object_answers(testbed.store, item, testbed.clock[0])
    assert await requests.unwritten(10) == ()
    assert (await requests.get("run-a", "q1")).refusal == refusal


async def test_an_expired_question_is_not_shown_again(testbed, run):
    path = "/v1/runs/run_a"
    assert "input_requests" in (await testbed.get(path))["data"]
    testbed.clock[0] += timedelta(hours=2)
    shown = (await testbed.get(path))["data"]
    assert "input_requests" not in shown and "waiting" not in shown
