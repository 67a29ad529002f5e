"""The index is lost or older than the cluster: live objects reappear and no run starts twice."""

import shutil
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from api.config import ApiConfig
from api.internal import routes
from api.store.store import Store
from api.v1.runs.create import RunRequest, create_run
from crds.kinds import POD, PROJECT
from crds.times import format_second
from tests.cluster.api.conftest import StoreTestbed, until
from tests.cluster.api.test_result import HOLDER, RESULT, call, create_claimed_run, send_events_and_artifact

FIELDS = ("uid", "status", "project", "deployment", "input", "output", "error", "completed_at", "duration_ms")
Start = Callable[..., Awaitable[None]]
Pods = TestClient[Any, Any]


@pytest.mark.parametrize("with_logs", [False, True], ids=["everything is lost", "logs are kept"])
async def test_empty_index_is_filled_from_live_objects(
    testbed: StoreTestbed, pods: Pods, work: Start, tmp_path: Path, with_logs: bool
) -> None:
    await work()
    await testbed.kube.patch(
        PROJECT,
        "demo",
        {"status": {"activeDeployment": "dep-a", "activatedAt": "2026-11-21T10:00:00Z"}},
        "status",
    )
    ended = await create_claimed_run(testbed, pods)
    await send_events_and_artifact(testbed, pods, ended)
    assert (await call(testbed, pods, ended, "result", RESULT))[0] == 200
    claim = (await testbed.get(ended))["status"]["claim"]
    ended_at = format_second(datetime.now(UTC))
    await testbed.end_run(
        ended, startTime=claim["time"], completionTime=ended_at, project="demo", deployment="dep-a"
    )
    request = RunRequest("demo", "dep-a", {"n": 1})
    pending = (await create_run(testbed.store, testbed.kube, request, datetime.now(UTC))).name
    before = testbed.store
    await work()
    first = {name: await before.runs.get(name) for name in (ended, pending)}
    if with_logs:
        shutil.copytree(testbed.config.data / "events", tmp_path / "fresh" / "events")
    fresh = await Store.open(tmp_path / "fresh", testbed.config.namespace)
    testbed.store = fresh
    try:
        await work()
        again = {name: await fresh.runs.get(name) for name in (ended, pending)}
        for name in (ended, pending):
            for field in FIELDS:
                assert getattr(again[name], field) == getattr(first[name], field), field
        assert (await fresh.runs.page(0, 9, project="demo")).total == 2
        deployment = await fresh.deployments.get("dep-a")
        assert deployment is not None and deployment.status == "active"
        assert (await fresh.deployments.page("demo", 0, 9)).total == 1
        # The event log had the crew's output; the object has the start and the outcome.
        events = (await fresh.events.read(ended, 0, 9)).events
        crew_events = ["log", "log", "artifact"] if with_logs else []
        assert [event.type for event in events] == ["run.started", *crew_events, "run.completed"]
        assert [event.id for event in events] == list(range(1, len(events) + 1))
        assert events[-1].data["output"] == RESULT["output"]
    finally:
        testbed.store = before
        await work()
        await fresh.close()


async def test_run_claimed_before_index_loss_is_refused(
    testbed: StoreTestbed, pods: Pods, work: Start, config: ApiConfig, tmp_path: Path
) -> None:
    await work()
    run = await create_claimed_run(testbed, pods)

    async def written() -> bool:
        return bool((await testbed.get(run))["status"].get("claim"))

    await until(written)
    fresh = await Store.open(tmp_path / "fresh", config.namespace)
    app = web.Application()
    routes.add_routes(app, config, fresh, testbed.kube)
    async with TestClient(TestServer(app)) as client:
        for holder in (HOLDER, {"pod_uid": "pod", "nonce": "another nonce"}):
            status, response = await call(testbed, client, run, "claim", holder)
            assert (status, response["state"]) == (200, "refused")
    await fresh.close()


@pytest.mark.parametrize(("seconds", "state"), [(60, "refused"), (-60, "granted")])
async def test_pods_older_than_restored_index_cannot_claim(
    testbed: StoreTestbed, store: Store, config: ApiConfig, seconds: int, state: str
) -> None:
    moment = datetime.now(UTC) + timedelta(seconds=seconds)
    app = web.Application()
    routes.add_routes(app, ApiConfig(**{**vars(config), "claims_not_before": moment}), store, testbed.kube)
    run = (await create_run(store, testbed.kube, RunRequest("demo", "dep-a", {}), datetime.now(UTC))).name
    pod = await testbed.kube.create(
        POD,
        {
            "metadata": {"name": run},
            "spec": {
                "nodeName": "none",
                "automountServiceAccountToken": False,
                "containers": [{"name": "run", "image": "registry.crewyard.internal:5000/none"}],
            },
        },
    )
    async with TestClient(TestServer(app)) as pods:
        holder = {"pod_uid": pod["metadata"]["uid"], "nonce": "nonce"}
        status, response = await call(testbed, pods, run, "claim", holder)
        assert (status, response["state"]) == (200, state)
        if state == "refused":
            assert "restored" in response["reason"]
            return
        # The cluster has no such pod.
        status, response = await call(testbed, pods, run, "claim", {"pod_uid": "other", "nonce": "x"})
        assert response["state"] == "refused"
