"""Questions of a run, answered in `crewyard run` at a pseudo-terminal; the API server has a real apiserver.

No pod runs: the test does what a pod and the controller would.
"""

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from api.store.index.claims.claims import ClaimRequest
from api.store.index.runs.input_requests import Question
from api.store.logs.event_log import NewEvent
from crds.kinds import DEPLOYMENT, RUN
from crds.names import id_of
from crds.times import format_second
from tests.e2e.command_line.terminal import PseudoTerminal

SOURCE = {"git": {"url": "https://git.example/x.git", "commit": "a" * 40}}


async def start(testbed) -> None:
    """Add a project with an active deployment."""
    await testbed.data(
        "POST", "/v1/projects", {"name": "crew", "source": {"git": {"url": SOURCE["git"]["url"]}}}
    )
    body = {"metadata": {"name": "dep-a"}, "spec": {"project": "crew", "source": SOURCE}}
    await testbed.kube.create(DEPLOYMENT, body)
    await testbed.mark_built("crew", "dep-a")


async def claim(testbed) -> str:
    """Return the name of the only run, once its object and row exist; claim it as its pod does."""
    runs = testbed.store.runs
    while not (found := (await runs.page(0, 1)).items) or not (row := await runs.get(found[0].name)).uid:
        await asyncio.sleep(0.02)
    request = ClaimRequest(row.uid, "pod", "nonce")
    await testbed.store.claims.grant(row.name, request, {"deployment_id": "dep_a"}, datetime.now(UTC))
    testbed.store.events.notify_state_changed(row.name)
    return row.name


async def ask(testbed, run: str, question: Question) -> None:
    """Ask as the pod does: the question, then its event."""
    now = datetime.now(UTC)
    await testbed.store.input_requests.open(run, question, now, now + timedelta(hours=1))
    data = {"run_id": id_of(run), "timestamp": format_second(now), "request_id": question.id}
    async with testbed.store.events.open_writer(run) as log:
        await log.append([NewEvent(log.seq + 1, "input.requested", {**data, "prompt": question.prompt})])
    testbed.store.events.notify_appended(run)


async def answered(testbed, run: str, request: str):
    """Return the answer to a question, once it has one."""
    while (item := await testbed.store.input_requests.get(run, request)) is None or item.answer is None:
        await asyncio.sleep(0.02)
    return item.answer["value"]


async def finish(testbed, run: str) -> None:
    """End the run as the controller does."""
    when, result = format_second(datetime.now(UTC)), {"outcome": "succeeded", "output": '"north"'}
    await testbed.patch_status(
        RUN, run, phase="Succeeded", completionTime=when, durationMs=1, result={**result, "durationMs": 1}
    )


@pytest.fixture
async def terminal(testbed, tmp_path):
    """`crewyard run` at a terminal."""
    await start(testbed)
    url, key = str(testbed.client.make_url("")).rstrip("/"), testbed.admin
    opened = PseudoTerminal(tmp_path, "run", "crew", CREWYARD_URL=url, CREWYARD_API_KEY=key)
    yield opened
    opened.close()


async def test_run_asks_until_an_answer_fits(testbed, terminal):
    run = await claim(testbed)
    await ask(testbed, run, Question("q1", "Which way?", None, ["north", "south"]))
    await asyncio.to_thread(terminal.expect, "Answer [north, south]: ")
    terminal.press("west\r")
    await asyncio.to_thread(terminal.expect, "must be one of")
    terminal.press("north\r")
    assert await answered(testbed, run, "q1") == "north"

    await ask(testbed, run, Question("q2", "How far?", {"type": "integer"}, None))
    await asyncio.to_thread(terminal.expect, "How far?")
    terminal.press("12\r")
    assert await answered(testbed, run, "q2") == 12
    await finish(testbed, run)
    assert await asyncio.to_thread(terminal.finish) == 0, terminal.text
    assert terminal.text.endswith("north\n")


@pytest.mark.parametrize(("key", "code"), [("\x03", 130), ("\x04", 130)])
async def test_leaving_a_question_says_how_to_answer_it(testbed, terminal, key, code):
    run = await claim(testbed)
    await ask(testbed, run, Question("q1", "Which way?", None, None))
    await asyncio.to_thread(terminal.expect, "Answer: ")
    terminal.press(key)
    assert await asyncio.to_thread(terminal.finish) == code, terminal.text
    assert f"{id_of(run)} is still running" in terminal.text
    assert f"crewyard runs answer {id_of(run)} q1 VALUE" in terminal.text
