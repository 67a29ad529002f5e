"""A run asks a person through the internal API, and gets the answer."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from aiohttp import web

from api.questions import answers, status_delivery
from api.store.index.runs import input_requests
from api.store.index.runs.input_requests import AnswerState, InputRequest, Question
from api.store.store import Store
from crds.installation_limits import InstallationLimits
from tests.testbed.apiserver import serving
from tests.unit.api.internal.conftest import Mint, Pods
from tests.unit.api.internal.test_runs import CLAIM, HOLDER, call_api
from tests.unit.api.internal.test_status_delivery import RUNS
from tests.unit.api.store import builders


@pytest.fixture
async def run(pods: Pods, store: Store, bearer: Mint) -> str:
    """A claimed run."""
    await builders.add_demo_project(store)
    name = await builders.create_run(store)
    status, claimed = await call_api(pods, name, "claim", CLAIM, bearer(name))
    assert (status, claimed["ask_seconds"]) == (200, 86400)
    return name


@pytest.fixture
def ask(pods: Pods, bearer: Mint, run: str) -> Any:
    """Return a function that asks as the run's pod."""

    async def ask(identifier: str = "q1", **body: Any) -> tuple[int, Any]:
        question = {"request_id": identifier, "prompt": "Which way?", **body}
        return await call_api(pods, run, "inputs", {**HOLDER, **question}, bearer(run))

    return ask


async def answer(store: Store, run: str, value: Any, request: str = "q1") -> AnswerState:
    return await store.input_requests.answer(run, request, value, "key_a", datetime.now(UTC))


async def test_an_answer_reaches_the_waiting_pod_and_any_later_call(ask: Any, store: Store, run: str) -> None:
    status, asked = await ask(timeout_seconds=3600)
    assert (status, asked["state"]) == (200, "waiting")
    assert (await ask(prompt="Another text"))[1] == asked, "a repeated call asks nothing new"
    waiting = asyncio.create_task(ask(wait_seconds=20))
    await asyncio.sleep(0.05)
    assert not waiting.done()
    assert await answer(store, run, {"way": None}) is AnswerState.ACCEPTED
    answered = {"state": "answered", "value": {"way": None}, "by": "key_a"}
    expected = (200, {**answered, "expires_at": asked["expires_at"]})
    assert await waiting == expected
    assert await ask() == expected


async def test_the_first_answer_counts(ask: Any, store: Store, run: str) -> None:
    await ask()
    states = await asyncio.gather(*(answer(store, run, number) for number in range(5)))
    assert sorted(state.name for state in states) == ["ACCEPTED", *["ANSWERED"] * 4]
    assert (await ask())[1]["value"] == states.index(AnswerState.ACCEPTED)


async def test_null_is_an_answer(ask: Any, store: Store, run: str) -> None:
    await ask()
    assert await answer(store, run, None) is AnswerState.ACCEPTED
    assert (await ask())[1].items() >= {"state": "answered", "value": None, "by": "key_a"}.items()


async def test_a_question_expires(ask: Any, store: Store, run: str) -> None:
    assert (await ask(timeout_seconds=0.05, wait_seconds=20))[1]["state"] == "expired"
    assert await answer(store, run, "late") is AnswerState.EXPIRED


async def test_a_closed_question_takes_no_answer_and_keeps_none(ask: Any, store: Store, run: str) -> None:
    await ask()
    await ask("q2")
    assert await answer(store, run, "secret", "q2") is AnswerState.ACCEPTED
    for identifier in ("q1", "q2", "q2"):
        assert await ask(identifier, done=True) == (200, {"state": "closed"})
    assert await answer(store, run, "late") is AnswerState.EXPIRED
    stored = await store.input_requests.get(run, "q2")
    assert stored is not None and stored.answer is None and stored.answered_by == "key_a"


async def test_a_call_that_waits_returns_when_its_question_closes(ask: Any, store: Store, run: str) -> None:
    await ask()
    mark = store.input_requests.mark
    await ask(done=True)
    async with asyncio.timeout(30):
        await store.input_requests.wait(run, mark, 60)
    assert (await ask(wait_seconds=20))[1]["state"] == "expired"


async def test_ended_run_accepts_no_question_and_no_answer(ask: Any, store: Store, run: str) -> None:
    await ask()
    await store.run_writer.observe(builders.run(run, "Canceled"), builders.NOW)
    assert await answer(store, run, "late") is AnswerState.ENDED
    assert (await ask())[0] == 409


async def test_another_pod_cannot_ask(pods: Pods, bearer: Mint, run: str) -> None:
    body = {**HOLDER, "nonce": "other", "request_id": "q1", "prompt": "?"}
    assert (await call_api(pods, run, "inputs", body, bearer(run)))[0] == 409
    assert (await call_api(pods, run, "inputs", body, bearer("run-other")))[0] == 401


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ({"prompt": "x" * 8193}, "prompt"),
        ({"prompt": 1}, "prompt"),
        ({"schema": "text"}, "JSON object"),
        ({"schema": {"type": "words"}}, "not a JSON Schema"),
        ({"schema": {"title": "x" * 20000}}, "16384 bytes"),
        ({"schema": {"properties": {"a": {"pattern": "(a+)+$"}}}}, "pattern"),
        ({"schema": {"$ref": "http://192.0.2.1/schema"}}, "$ref"),
        ({"schema": {"$ref": "#/$defs/absent"}}, "$ref"),
        ({"choices": []}, "choices"),
        ({"choices": ["x" * 20000]}, "choices"),
    ],
)
async def test_what_a_run_cannot_ask_is_refused_with_the_field(ask: Any, body: Any, problem: str) -> None:
    status, refused = await ask(**body)
    assert status == 422 and problem in refused["error"]


async def test_a_lone_surrogate_becomes_a_question_mark(ask: Any, store: Store, run: str) -> None:
    """A crew can send half of a character, which UTF-8 cannot represent, and SQLite cannot store."""
    status, asked = await ask(prompt="ok \ud83d", choices=["yes", "\ud83d"])
    assert (status, asked.get("state")) == (200, "waiting")
    item = builders.run(run, "Running", spec={"answers": [{"request": "q1", "value": "no"}]})
    await answers.apply_object_answers(store, item, datetime.now(UTC))
    stored = await store.input_requests.get(run, "q1")
    assert stored is not None
    assert (stored.prompt, stored.refusal) == ("ok ?", 'value must be one of "yes", "?"')


async def test_open_questions_and_all_questions_of_a_run_are_bounded(
    ask: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(input_requests, "MAX_OPEN_REQUESTS", 2)
    monkeypatch.setattr(input_requests, "MAX_REQUESTS", 3)
    assert [(await ask(f"q{number}"))[0] for number in (1, 2, 3)] == [200, 200, 422]
    await ask("q1", done=True)
    assert (await ask("q3"))[0] == 200
    await ask("q2", done=True)
    status, refused = await ask("q4")
    assert status == 422 and "at most 3 questions" in refused["error"]


@pytest.mark.parametrize("limits", [InstallationLimits(ask_seconds=0, ask_max_seconds=0)])
async def test_an_installation_can_refuse_questions(pods: Pods, store: Store, bearer: Mint) -> None:
    await builders.add_demo_project(store)
    name = await builders.create_run(store)
    assert (await call_api(pods, name, "claim", CLAIM, bearer(name)))[1]["ask_seconds"] == 0
    body = {**HOLDER, "request_id": "q1", "prompt": "?"}
    status, refused = await call_api(pods, name, "inputs", body, bearer(name))
    assert status == 422 and "ask_max_seconds" in refused["error"]


async def test_answers_in_the_object_are_taken_in_their_order(ask: Any, store: Store, run: str) -> None:
    await ask(schema={"type": "integer"})
    await ask("q2", choices=["yes", "no"])
    given = [("q9", 1), ("q1", "one"), ("q1", 2), ("q1", 3), ("q2", "maybe")]
    item = builders.run(run, "Running", spec={"answers": [{"request": r, "value": v} for r, v in given]})
    counted: list[int] = []
    for _ in range(2):
        await answers.apply_object_answers(store, item, datetime.now(UTC), lambda: counted.append(1))
    assert (await ask())[1].items() >= {"state": "answered", "value": 2, "by": "kubectl"}.items()
    refused = await store.input_requests.get(run, "q2")
    assert refused is not None and refused.refusal == 'value must be one of "yes", "no"'
    assert counted == [1]


async def test_the_object_shows_what_is_open_until_it_is_written(ask: Any, store: Store, run: str) -> None:
    await ask(prompt="x" * 2000, timeout_seconds=60)
    await ask("q2")
    await answer(store, run, "now", "q2")
    shown = await store.input_requests.unanswered(run)
    patch = status_delivery.status_patch("uid", shown)
    [entry] = patch["status"]["inputRequests"]
    assert patch["metadata"] == {"uid": "uid"}
    assert (entry["request"], len(entry["prompt"])) == ("q1", 1024)
    assert await store.input_requests.unwritten(10) == (run,)
    await store.input_requests.mark_written(run, shown)
    assert await store.input_requests.unwritten(10) == ()


async def test_a_question_that_closes_during_its_write_is_written_again(
    ask: Any, store: Store, run: str
) -> None:
    written: list[list[str]] = []

    async def patch(request: web.Request) -> web.Response:
        entries = (await request.json())["status"]["inputRequests"]
        written.append([entry["request"] for entry in entries])
        if len(written) == 1:
            await answer(store, run, "meanwhile")
            await store.input_requests.close(run, "q1")
        return web.json_response({})

    await ask()
    async with serving([web.patch(RUNS + "/status", patch)]) as kube:
        assert await status_delivery.deliver(store, kube, run)
        assert await store.input_requests.unwritten(10) == (run,)
        assert await status_delivery.deliver(store, kube, run)
    assert await store.input_requests.unwritten(10) == ()
    assert written == [["q1"], []]


async def test_an_older_write_of_another_replica_is_repeated(ask: Any, store: Store, run: str) -> None:
    await ask()
    shown = await store.input_requests.unanswered(run)
    await answer(store, run, "meanwhile")
    await store.input_requests.mark_written(run, ())
    assert await store.input_requests.unwritten(10) == ()
    await store.input_requests.mark_written(run, shown)
    assert await store.input_requests.unwritten(10) == (run,)


async def test_what_changes_after_it_was_read_is_written_again(ask: Any, store: Store, run: str) -> None:
    await ask()
    shown = await store.input_requests.unanswered(run)
    await store.input_requests.note_refusal(run, "q1", "no")
    await ask("q2")
    await store.input_requests.mark_written(run, shown)
    assert await store.input_requests.unwritten(10) == (run,)


async def test_questions_that_an_object_refuses_delay_no_others(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(status_delivery, "BATCH_SIZE", 2)
    await builders.add_demo_project(store)
    refused = [await builders.claim_run(store) for _ in range(3)]
    taken = await builders.claim_run(store)
    all_refused, written, seen = asyncio.Event(), asyncio.Event(), set[str]()

    async def patch(request: web.Request) -> web.Response:
        run = request.match_info["name"]
        if run == taken:
            written.set()
            return web.json_response({})
        seen.add(run)
        if seen == set(refused):
            all_refused.set()
        return web.json_response({"message": "refused"}, status=403)

    async with serving([web.patch(RUNS + "/status", patch)]) as kube:
        task = asyncio.create_task(status_delivery.deliver_all(store, kube))
        try:
            for run in (*refused, taken):
                question, now = Question("q1", "Which way?", None, None), datetime.now(UTC)
                await store.input_requests.open(run, question, now, now + timedelta(hours=1))
            async with asyncio.timeout(60):
                await all_refused.wait()
                await written.wait()
        finally:
            task.cancel()


def test_an_object_that_ended_or_was_recreated_needs_no_write() -> None:
    manifest = builders.run("run-a", "Running").raw
    assert not status_delivery.is_final("run-uid", manifest)
    assert status_delivery.is_final("other", manifest)
    assert status_delivery.is_final("run-uid", None)
    assert status_delivery.is_final("run-uid", builders.run("run-a", "Failed").raw)


def test_a_request_is_open_until_its_answer_its_end_or_its_expiry() -> None:
    now = datetime.now(UTC)
    fields = {"schema": None, "choices": None, "answered_by": None, "refusal": None, "answer": None}
    open_ = InputRequest(
        run="run-a", id="q1", prompt="?", created_at=now, expires_at=now + timedelta(seconds=1),
        answered_at=None, closed=False, **fields,
    )  # fmt: skip
    assert open_.is_open(now)
    assert not open_.is_open(now + timedelta(seconds=1))
