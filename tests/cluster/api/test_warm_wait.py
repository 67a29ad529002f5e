"""A pod that was started before its run gets to know it, by a watch of the real apiserver."""

import asyncio
from typing import Any

import pytest
from aiohttp.test_utils import TestClient

from crds import names, pod_tokens
from crds.kinds import POD, RUN
from crds.times import parse_time
from tests.cluster.api.conftest import KEY, StoreTestbed

Pods = TestClient[Any, Any]
NAME = "warm-demo-1"


async def create_pod(testbed: StoreTestbed, name: str = NAME) -> dict[str, Any]:
    """Create a pod that waits, as the controller does; no node takes it."""
    labels = {names.LABEL_PROJECT: "demo", names.LABEL_DEPLOYMENT: "dep-a", names.LABEL_WARM: "f0"}
    spec = {"containers": [{"name": "crew", "image": "none:1"}], "nodeSelector": {"no": "such"}}
    return await testbed.kube.create(POD, {"metadata": {"name": name, "labels": labels}, "spec": spec})


async def bind(testbed: StoreTestbed, pod: dict[str, Any], run: dict[str, Any]) -> dict[str, Any]:
    """Give the pod to the run, as the controller does."""
    owner = {"apiVersion": RUN.api_version, "kind": "Run", "name": run["metadata"]["name"]}
    metadata = {
        "uid": pod["metadata"]["uid"],
        "labels": {names.LABEL_RUN: run["metadata"]["name"]},
        "annotations": {names.ANNOTATION_BOUND_AT: "2026-11-21T10:00:00Z"},
        "ownerReferences": [{**owner, "uid": run["metadata"]["uid"]}],
    }
    change = {"metadata": metadata, "spec": {"activeDeadlineSeconds": 3600}}
    return await testbed.kube.patch(POD, pod["metadata"]["name"], change)


async def wait(
    testbed: StoreTestbed, pods: Pods, pod: dict[str, Any], seconds: int = 20, name: str = NAME, **more: Any
) -> tuple[int, Any]:
    headers = testbed.auth_headers(more.pop("token_name", name), "uid-demo", more.pop("kind", "warm"))
    body = {"protocol": 1, "pod_uid": pod["metadata"]["uid"], "wait_seconds": seconds, **more}
    async with pods.post(f"/internal/v1/warm/{name}/wait", json=body, headers=headers) as response:
        return response.status, await response.json()


async def create_run(testbed: StoreTestbed) -> dict[str, Any]:
    return await testbed.kube.create(RUN, {"metadata": {"name": "run-a"}, "spec": {"project": "demo"}})


async def test_a_pod_gets_its_run_and_claims_it(testbed: StoreTestbed, pods: Pods) -> None:
    pod = await create_pod(testbed)
    assert await wait(testbed, pods, pod, seconds=0) == (200, {"state": "waiting"})
    asked = asyncio.create_task(wait(testbed, pods, pod))
    run = await create_run(testbed)
    await bind(testbed, pod, run)
    status, answer = await asked
    while answer["state"] == "waiting":
        status, answer = await wait(testbed, pods, pod)
    assert (status, answer["state"], answer["run"]) == (200, "bound", "run-a")
    assert answer["run_uid"] == run["metadata"]["uid"]
    # A pod that lost the answer asks again.
    assert (await wait(testbed, pods, pod))[1] == answer
    token = pod_tokens.verify((KEY,), answer["token"], 0)
    assert (token.kind, token.name, token.uid) == ("run", "run-a", run["metadata"]["uid"])
    assert token.expires == int(parse_time("2026-11-21T10:00:00Z").timestamp()) + 3600 + 60
    # The controller has not resolved this run's deployment yet: the pod's label has it.
    body = {"protocol": 1, "run_uid": run["metadata"]["uid"], "nonce": "n", "pod_uid": pod["metadata"]["uid"]}
    headers = testbed.auth_headers("run-a", run["metadata"]["uid"])

    async def claim() -> tuple[int, Any]:
        async with pods.post("/internal/v1/runs/run-a/claim", json=body, headers=headers) as response:
            return response.status, await response.json()

    status, granted = await claim()
    assert (status, granted.get("state"), granted.get("deployment_id")) == (200, "granted", "dep_a")
    body["pod_uid"] = "another"
    assert (await claim())[1]["state"] == "refused"


async def test_a_pod_without_a_run_gets_none(testbed: StoreTestbed, pods: Pods) -> None:
    """Neither the run of another pod, nor that of an older pod of its name, nor one without an owner."""
    pod, other = await create_pod(testbed), await create_pod(testbed, "warm-demo-2")
    run = await create_run(testbed)
    await bind(testbed, other, run)
    assert (await wait(testbed, pods, other, name="warm-demo-2"))[1]["state"] == "bound"
    assert (await wait(testbed, pods, pod, seconds=0))[1] == {"state": "waiting"}
    foreign_pod = {"metadata": {"uid": "another"}}
    assert (await wait(testbed, pods, foreign_pod, seconds=0, name="warm-demo-2"))[1] == {"state": "waiting"}
    labelled = {"metadata": {"labels": {names.LABEL_RUN: "run-a"}}}
    await testbed.kube.patch(POD, NAME, labelled)
    assert (await wait(testbed, pods, pod, seconds=1))[1] == {"state": "waiting"}


@pytest.mark.parametrize("change", [{"kind": "run"}, {"token_name": "warm-demo-2"}])
async def test_the_token_is_for_this_pod_and_call(
    testbed: StoreTestbed, pods: Pods, change: dict[str, str]
) -> None:
    pod = await create_pod(testbed)
    assert (await wait(testbed, pods, pod, seconds=0, **change))[0] == 401


async def test_the_token_of_a_waiting_pod_claims_nothing(testbed: StoreTestbed, pods: Pods) -> None:
    run = await create_run(testbed)
    uid = run["metadata"]["uid"]
    body = {"protocol": 1, "run_uid": uid, "nonce": "n", "pod_uid": "pod"}
    headers = testbed.auth_headers("run-a", uid, "warm")
    for call in ("claim", "events", "inputs", "result"):
        async with pods.post(f"/internal/v1/runs/run-a/{call}", json=body, headers=headers) as response:
            assert response.status == 401
