"""The runner's fake API against the real one: the same calls get the same answers.

The real runner then executes a crew against the real API, without the fake.
"""

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from api.store.store import Store
from crds.installation_limits import InstallationLimits
from tests.unit.api.internal.conftest import FakeObjects, Mint, Pods
from tests.unit.api.store import builders
from tests.unit.api.store.blobs.test_blobs import read_all
from tests.unit.runner import api_server as fake
from tests.unit.runner.conftest import RunnerPod

NONCE = "a nonce of the runner"
QUESTION = {"request_id": "q1", "prompt": "?", "timeout_seconds": 3600, "wait_seconds": 0}
EXPIRING = {"timeout_seconds": 0, "wait_seconds": 1}
WRONG_SHA256 = {"X-Crewyard-Sha256": "0" * 64}


@dataclass
class RunCaller:
    """Calls of one run pod to one of the two APIs."""

    session: aiohttp.ClientSession
    url: str
    run_uid: str
    pod_uid: str

    async def call(self, call: str, **body: Any) -> tuple[int, Any]:
        """Send a JSON call; return status and body."""
        if call == "claim":
            whole = {"protocol": 1, "run_uid": self.run_uid, "pod_uid": self.pod_uid, "nonce": NONCE, **body}
        else:
            whole = {"pod_uid": self.pod_uid, "nonce": NONCE, **body}
        async with self.session.post(f"{self.url}/{call}", json=whole) as response:
            return response.status, await response.json()

    async def put(self, name: str, data: bytes, **changed: str) -> tuple[int, Any]:
        """Upload an artifact; return status and body."""
        headers = {
            "X-Crewyard-Pod": self.pod_uid,
            "X-Crewyard-Nonce": NONCE,
            "X-Crewyard-Sha256": hashlib.sha256(data).hexdigest(),
            "X-Crewyard-Partial": "false",
            "Content-Type": "text/plain",
            **changed,
        }
        async with self.session.put(f"{self.url}/artifacts/{name}", data=data, headers=headers) as response:
            return response.status, await response.json()


def event(seq: int) -> dict[str, Any]:
    return {"seq": seq, "type": "log", "time": "2026-11-21T10:00:02.000123Z", "data": {"message": "x"}}


def result(last_event: int, count: int, **more: Any) -> dict[str, Any]:
    return {
        "outcome": "succeeded",
        "reason": None,
        "message": None,
        "duration_ms": 5,
        "output": {"a": 1},
        "output_artifact": None,
        "last_event": last_event,
        "artifacts": {"count": count, "bytes": count},
        **more,
    }


async def converse(caller: RunCaller) -> dict[str, tuple[int, Any]]:
    """Make every call of the protocol; return the answers."""
    other = {"nonce": "a nonce of another pod"}
    return {
        "claim": await caller.call("claim"),
        "claim again": await caller.call("claim"),
        "claim of another": await caller.call("claim", **other),
        "events": await caller.call("events", events=[event(1), event(2)]),
        "events again": await caller.call("events", events=[event(2), event(3)]),
        "events of another": await caller.call("events", events=[event(4)], **other),
        "question": await caller.call("inputs", **QUESTION),
        "question again": await caller.call("inputs", **QUESTION),
        "question of another": await caller.call("inputs", **QUESTION, **other),
        "question that expires": await caller.call("inputs", **{**QUESTION, "request_id": "q2", **EXPIRING}),
        "closed question": await caller.call("inputs", request_id="q1", done=True),
        "artifact": await caller.put("reports/a%20b.txt", b"1"),
        "artifact again": await caller.put("reports/a%20b.txt", b"1"),
        "artifact of another": await caller.put("b", b"1", **{"X-Crewyard-Nonce": "another"}),
        "artifact with a wrong hash": await caller.put("b", b"1", **WRONG_SHA256),
        "refused artifact": await caller.put("refused.txt", b"too large"),
        "result of another": await caller.call("result", **result(3, 1, **other)),
        "result without an event": await caller.call("result", **result(4, 1)),
        "result without an artifact": await caller.call("result", **result(3, 2)),
        "result": await caller.call("result", **result(3, 1)),
        "result again": await caller.call("result", **result(3, 1)),
    }


TEXTS = ("error", "reason", "started_at", "deployment_id", "expires_at")
"""Fields whose values may differ."""


def comparable(answer: Any) -> Any:
    """Return an answer without the texts that may differ, but with the fields that have them."""
    if isinstance(answer, tuple):
        return answer[0], comparable(answer[1])
    if isinstance(answer, dict):
        return {key: "text" if key in TEXTS else comparable(value) for key, value in answer.items()}
    return answer


@pytest.fixture
def limits() -> InstallationLimits:
    """So small that the fake and the API refuse the same artifact."""
    return InstallationLimits(artifact_bytes=8)


async def test_fake_run_api_answers_like_the_api(
    pods: Pods, store: Store, bearer: Mint, objects: FakeObjects, limits: InstallationLimits
) -> None:
    objects.accepts_writes = True
    await builders.add_demo_project(store)
    run = await builders.create_run(store, input={"topic": "ants"}, timeout="60s")
    async with aiohttp.ClientSession(headers=bearer(run)) as session:
        url = str(pods.make_url(f"/internal/v1/runs/{run}"))
        real = await converse(RunCaller(session, url, "run-uid", "pod"))
    stand_in = fake.FakeRunAPI(
        input={"topic": "ants"},
        timeout=60,
        ask_seconds=86400,
        limits={"artifact_bytes": limits.artifact_bytes},
        refuse_artifacts={"refused.txt": "the limit of a run is 8 bytes of files"},
    )
    await stand_in.start()
    try:
        async with aiohttp.ClientSession(headers={"Authorization": f"Bearer {fake.TOKEN}"}) as session:
            url = f"{stand_in.url}/internal/v1/runs/{fake.RUN}"
            answers = await converse(RunCaller(session, url, fake.RUN_UID, fake.POD_UID))
    finally:
        await stand_in.stop()
    assert {call: comparable(answer) for call, answer in answers.items()} == {
        call: comparable(answer) for call, answer in real.items()
    }
    statuses = {call: status for call, (status, _) in real.items()}
    assert {call for call, status in statuses.items() if status != 200} == {
        *("events of another", "question of another", "artifact of another", "result of another"),
        *("artifact with a wrong hash", "refused artifact"),
        *("result without an event", "result without an artifact"),
    }


class RealRunAPI:
    """What the pod of a test asks of the fake, for the real API."""

    def __init__(self, url: str) -> None:
        self.url = url


async def test_real_runner_against_the_real_api(
    pods: Pods, store: Store, bearer: Mint, objects: FakeObjects, tmp_path: Path
) -> None:
    objects.accepts_writes = True
    await builders.add_demo_project(store)
    run = await builders.create_run(store, input={"topic": "ants"})
    pod = RunnerPod(tmp_path / "pod", RealRunAPI(str(pods.make_url("")).rstrip("/")))
    pod.crew(
        """
        def kickoff(inputs):
            print("hello", inputs["topic"])
            with open("artifacts/a.txt", "w") as file:
                file.write("abc")
            return {"topic": inputs["topic"]}
        """
    )
    token = bearer(run)["Authorization"].removeprefix("Bearer ")
    ended = await pod.run(RUN=run, RUN_UID="run-uid", POD_UID="pod", TOKEN=token)
    assert ended.code == 0, ended.stderr
    claim = await store.claims.get(run)
    assert claim is not None and claim.result is not None
    assert (claim.result["outcome"], claim.result["output"]) == ("succeeded", '{"topic":"ants"}')
    assert claim.result["artifacts"] == {"count": 1, "bytes": 3}
    page = await store.events.read(run, 0, 100)
    types = [stored.type for stored in page.events]
    assert types[0] == "run.started" and {"log", "artifact"} <= set(types)
    assert "hello ants" in [stored.data.get("message") for stored in page.events if stored.type == "log"]
    row = await store.artifacts.get(run, "a.txt")
    assert row is not None and await read_all(store.blobs.read(row.blob)) == b"abc"
