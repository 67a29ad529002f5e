"""A pod's claim and result are written to the Run once, before the pod gets the response."""

import hashlib
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any

from aiohttp.test_utils import TestClient

from api.v1.runs.create import RunRequest, create_run
from crds.kinds import DEPLOYMENT, POD, RUN
from crds.names import LABEL_DEPLOYMENT, LABEL_PROJECT
from crds.objects import Deployment
from tests.cluster.api.conftest import StoreTestbed, until

Pods = TestClient[Any, Any]
Start = Callable[..., Awaitable[None]]
HOLDER = {"pod_uid": "pod", "nonce": "nonce"}
RESULT = {
    **HOLDER,
    "outcome": "succeeded",
    "reason": None,
    "message": None,
    "duration_ms": 1500,
    "output": {"answer": [42, "ä"]},
    "output_artifact": None,
    "last_event": 2,
    "artifacts": {"count": 1, "bytes": 3},
}


async def call(
    testbed: StoreTestbed, pods: Pods, run: str, action: str, body: Any, uid: str | None = None
) -> tuple[int, Any]:
    uid = uid or (await testbed.get(run))["metadata"]["uid"]
    if action == "claim":
        body = {"protocol": 1, "run_uid": uid, **body}
    address = f"/internal/v1/runs/{run}/{action}"
    async with pods.post(address, json=body, headers=testbed.auth_headers(run, uid)) as response:
        return response.status, await response.json()


async def create_claimed_run(testbed: StoreTestbed, pods: Pods) -> str:
    request = RunRequest("demo", "dep-a", {"topic": "ants"})
    run = (await create_run(testbed.store, testbed.kube, request, datetime.now(UTC))).name
    assert (await call(testbed, pods, run, "claim", HOLDER))[1]["state"] == "granted"
    return run


async def send_events_and_artifact(testbed: StoreTestbed, pods: Pods, run: str) -> None:
    """Send two events and an artifact."""
    events = [{"seq": n, "type": "log", "time": None, "data": {"message": str(n)}} for n in (1, 2)]
    assert (await call(testbed, pods, run, "events", {**HOLDER, "events": events}))[0] == 200
    headers = {
        **testbed.auth_headers(run, (await testbed.get(run))["metadata"]["uid"]),
        "X-Crewyard-Pod": "pod",
        "X-Crewyard-Nonce": "nonce",
        "X-Crewyard-Sha256": hashlib.sha256(b"abc").hexdigest(),
    }
    address = f"/internal/v1/runs/{run}/artifacts/report.md"
    async with pods.put(address, data=b"abc", headers=headers) as response:
        assert response.status == 200


async def test_claim_events_result_and_end_of_a_run(testbed: StoreTestbed, pods: Pods, work: Start) -> None:
    await work()
    run = await create_claimed_run(testbed, pods)

    async def written() -> Any:
        return (await testbed.get(run))["status"].get("claim")

    claim = await until(written)
    row = await testbed.store.runs.get(run)
    assert row is not None
    assert row.started_at is not None
    assert claim["podUid"] == "pod"
    assert datetime.fromisoformat(claim["time"]) == row.started_at
    early = await call(testbed, pods, run, "result", RESULT)
    assert (early[0], early[1]["missing"]) == (
        425,
        {"events": {"stored": 0, "expected": 2}, "artifacts": {"stored": 0, "expected": 1}},
    )
    await send_events_and_artifact(testbed, pods, run)
    for _ in range(2):
        assert await call(testbed, pods, run, "result", RESULT) == (200, {})
        assert (await testbed.get(run))["status"]["result"] == {
            "outcome": "succeeded",
            "durationMs": 1500,
            "output": '{"answer":[42,"ä"]}',
            "artifacts": {"count": 1, "bytes": 3},
        }
    assert (await call(testbed, pods, run, "result", {**RESULT, "duration_ms": 9}))[0] == 409
    await testbed.end_run(run, startTime=claim["time"])

    async def ended() -> bool:
        found = await testbed.store.runs.get(run)
        return found is not None and found.ended

    await until(ended)
    page = await testbed.store.events.read(run, 0, 100)
    assert [(event.id, event.type) for event in page.events] == [
        (1, "run.started"),
        (2, "log"),
        (3, "log"),
        (4, "artifact"),
        (5, "run.completed"),
    ]
    assert page.events[-1].data["output"] == {"answer": [42, "ä"]}
    # A runner that missed the response repeats the request.
    assert await call(testbed, pods, run, "result", RESULT) == (200, {})
    assert (await call(testbed, pods, run, "events", {**HOLDER, "events": []}))[0] == 409


async def test_pod_faster_than_the_watch_can_claim(testbed: StoreTestbed, pods: Pods) -> None:
    spec = {"project": "demo", "input": {"a": 1}}
    await testbed.kube.create(RUN, {"metadata": {"name": "run-fast"}, "spec": spec})
    status, _ = await call(testbed, pods, "run-fast", "claim", HOLDER)
    assert status == 503
    await testbed.kube.patch(
        RUN, "run-fast", {"status": {"deployment": "dep-a", "project": "demo"}}, "status"
    )
    status, response = await call(testbed, pods, "run-fast", "claim", HOLDER)
    assert (status, response["state"], response["input"]) == (200, "granted", {"a": 1})
    assert (await call(testbed, pods, "run-none", "claim", HOLDER, uid="none"))[0] == 404


async def test_claim_before_status_uses_the_pods_labels(
    testbed: StoreTestbed, pods: Pods, work: Start
) -> None:
    await work()
    created = await testbed.kube.create(RUN, {"metadata": {"name": "run-a"}, "spec": {"project": "demo"}})
    uid = created["metadata"]["uid"]

    async def is_recorded() -> bool:
        return await testbed.store.runs.get("run-a") is not None

    await until(is_recorded)
    pod = await testbed.kube.create(
        POD,
        {
            "metadata": {
                "name": "run-a",
                "labels": {LABEL_PROJECT: "demo", LABEL_DEPLOYMENT: "dep-a"},
                "ownerReferences": [
                    {"apiVersion": RUN.api_version, "kind": "Run", "name": "run-a", "uid": uid},
                ],
            },
            "spec": {"containers": [{"name": "crew", "image": "none:1"}], "nodeSelector": {"no": "such"}},
        },
    )
    assert (await call(testbed, pods, "run-a", "claim", HOLDER))[0] == 503
    holder = {**HOLDER, "pod_uid": pod["metadata"]["uid"]}
    status, response = await call(testbed, pods, "run-a", "claim", holder)
    assert (status, response["state"], response["deployment_id"]) == (200, "granted", "dep_a")
    assert (await testbed.store.runs.page(0, 10, deployment="dep-a", statuses=["running"])).total == 1


async def test_claim_and_result_survive_a_restart(testbed: StoreTestbed, pods: Pods, work: Start) -> None:
    run = await create_claimed_run(testbed, pods)
    await send_events_and_artifact(testbed, pods, run)
    await testbed.store.claims.record_result(run, "pod", "nonce", {"outcome": "succeeded", "durationMs": 5})
    assert "claim" not in (await testbed.get(run))["status"]
    await work()

    async def written() -> bool:
        return "result" in (await testbed.get(run))["status"]

    await until(written)
    assert (await testbed.get(run))["status"]["claim"]["podUid"] == "pod"

    async def settled() -> bool:
        return not await testbed.store.claims.unwritten(10)

    await until(settled)


async def test_ended_or_deleted_run_ends_status_retries(
    testbed: StoreTestbed, pods: Pods, work: Start
) -> None:
    run = await create_claimed_run(testbed, pods)
    deleted = await create_claimed_run(testbed, pods)
    await testbed.end_run(run, phase="Canceled")
    await testbed.kube.delete(RUN, deleted)
    await work()

    async def settled() -> bool:
        return not await testbed.store.claims.unwritten(10)

    await until(settled)
    assert "claim" not in (await testbed.get(run))["status"]
    row = await testbed.store.runs.get(deleted)
    assert row is not None
    assert row.status == "canceled"


async def test_run_with_missing_input_fails(testbed: StoreTestbed, pods: Pods) -> None:
    spec = {"deployment": "dep-a", "project": "demo", "inputRef": {"sha256": "0" * 64, "size": 20000}}
    await testbed.kube.create(RUN, {"metadata": {"name": "run-a"}, "spec": spec})
    for _ in range(2):
        assert (await call(testbed, pods, "run-a", "claim", HOLDER))[1]["state"] == "refused"
    status = (await testbed.get("run-a"))["status"]
    assert "claim" not in status
    assert (status["result"]["outcome"], status["result"]["reason"]) == ("failed", "InputTooLarge")


async def test_run_with_an_input_that_is_not_declared_fails(testbed: StoreTestbed, pods: Pods) -> None:
    schema = {"type": "object", "properties": {"topic": {"type": "string"}}, "required": ["topic"]}
    plan = {
        "entrypoint": "main:kickoff",
        "framework": "python",
        "inputs": {"schema": schema, "declared": True},
    }
    await testbed.kube.patch(DEPLOYMENT, "dep-a", {"status": {"plan": plan}}, "status")
    await testbed.store.deployments.observe(Deployment(await testbed.kube.get(DEPLOYMENT, "dep-a") or {}))
    spec = {"deployment": "dep-a", "project": "demo", "input": {"topic": 3}}
    await testbed.kube.create(RUN, {"metadata": {"name": "run-a"}, "spec": spec})
    for _ in range(2):
        response = (await call(testbed, pods, "run-a", "claim", HOLDER))[1]
        assert response == {"state": "refused", "reason": "input.topic must be a string"}
    status = (await testbed.get("run-a"))["status"]
    assert "claim" not in status
    result = status["result"]
    assert (result["outcome"], result["reason"]) == ("failed", "InputInvalid")
    assert result["message"] == "input.topic must be a string"
    await testbed.kube.create(
        RUN, {"metadata": {"name": "run-b"}, "spec": {**spec, "input": {"topic": "tides"}}}
    )
    assert (await call(testbed, pods, "run-b", "claim", HOLDER))[1]["state"] == "granted"


async def test_object_holds_256_kib_of_input(testbed: StoreTestbed, pods: Pods) -> None:
    value = {"text": "x" * (256 * 1024 - 11)}
    spec = {"deployment": "dep-a", "project": "demo", "input": value}
    await testbed.kube.create(RUN, {"metadata": {"name": "run-a"}, "spec": spec})
    status, response = await call(testbed, pods, "run-a", "claim", HOLDER)
    assert (status, response["state"], response["input"]) == (200, "granted", value)
    await testbed.kube.patch(RUN, "run-a", {"spec": {"cancel": True}})
