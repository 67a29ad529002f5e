"""What becomes of a Decision's writes and Events where the apiserver refuses one of them."""

import asyncio
import contextlib
import time
from typing import Any

import pytest
from aiohttp import web

from controller.deployment.queue_view import BuildQueueView
from controller.deployment.reuse import find_building
from controller.observability.metrics import ControllerMetrics
from controller.runtime import event_map
from controller.runtime.apply import Applier
from controller.runtime.cache import ObjectCache
from controller.runtime.decision import Create, Decision, ObjectEvent, Patch
from controller.runtime.errors import Retry, is_expected
from controller.runtime.event_handlers import EventHandlers
from controller.runtime.queues import Queues
from controller.runtime.recorder import Recorder
from crds import kinds
from kube import errors
from tests.testbed.apiserver import serving
from tests.unit.controller.memory_kube import ReconcilerTestbed

OURS = "/apis/crewyard.dev/v1alpha1/namespaces/crews"


class RecordingApiserver:
    """Takes everything but status patches of the objects named in `changed` and in `deleted`."""

    def __init__(self) -> None:
        self.changed: set[str] = set()
        self.deleted: set[str] = set()
        self.recorded: list[str] = []

    def routes(self) -> list[web.RouteDef]:
        """The calls that a Decision makes."""
        return [
            web.post(OURS + "/deployments", self.create),
            web.patch(OURS + "/{plural}/{name}/status", self.patch),
            web.post("/api/v1/namespaces/crews/events", self.tell),
        ]

    async def create(self, request: web.Request) -> web.Response:
        return web.json_response(await self._stored(request, "7"), status=201)

    async def patch(self, request: web.Request) -> web.Response:
        if request.match_info["name"] in self.changed:
            return web.json_response({"reason": "Conflict", "message": "it has changed"}, status=409)
        if request.match_info["name"] in self.deleted:
            return web.json_response({"reason": "NotFound", "message": "it is gone"}, status=404)
        return web.json_response(await self._stored(request, "8"))

    async def tell(self, request: web.Request) -> web.Response:
        body = await request.json()
        self.recorded.append(body["reason"])
        return web.json_response(body, status=201)

    async def _stored(self, request: web.Request, version: str) -> dict[str, Any]:
        body = await request.json()
        name = request.match_info.get("name") or body["metadata"]["name"]
        metadata = {**body["metadata"], "name": name, "uid": name, "resourceVersion": version}
        return {"spec": {"project": "demo"}, **body, "metadata": metadata}


@pytest.fixture
def cluster():
    return RecordingApiserver()


@pytest.fixture
async def kube(cluster):
    async with serving(cluster.routes()) as opened:
        yield opened


@pytest.mark.parametrize(
    ("changed", "recorded"),
    [
        (set(), ["NewCommit", "Activated", "First", "Second"]),
        ({"demo"}, ["NewCommit"]),
        ({"dep-1"}, ["NewCommit", "Activated"]),
        ({"dep-2"}, ["NewCommit", "Activated", "First"]),
    ],
)
async def test_events_are_recorded_only_after_a_write(make, kube, cluster, changed, recorded):
    cluster.changed = changed
    known, lanes, metrics = ObjectCache(), Queues(time.monotonic), ControllerMetrics()
    actor = Applier(kube, known, EventHandlers(known, lanes), lanes, Recorder(kube, metrics), metrics)
    body = make.deployment("dep-new").raw
    decision = Decision(
        create=(Create(kinds.DEPLOYMENT, body, (ObjectEvent("NewCommit", "It is deployed."),)),),
        status={"activeDeployment": "dep-1"},
        events=(ObjectEvent("Activated", "It is active."),),
        after=(
            Patch(
                kinds.DEPLOYMENT,
                "dep-1",
                {"status": {"phase": "Active"}},
                "1",
                events=(ObjectEvent("First", ""),),
            ),
            Patch(
                kinds.DEPLOYMENT,
                "dep-2",
                {"status": {"phase": "Failed"}},
                "1",
                events=(ObjectEvent("Second", ""),),
            ),
        ),
    )
    telling = asyncio.create_task(actor.recorder.run())
    with pytest.raises(errors.KubeConflict) if changed else contextlib.nullcontext():
        await actor.apply(kinds.PROJECT, make.project().raw, event_map.project("demo"), decision)
    actor.recorder.record(kinds.PROJECT, make.project().raw, ObjectEvent("Last", ""), make.now)
    async with asyncio.timeout(60):
        # The recorder writes them in order.
        while "Last" not in cluster.recorded:
            await asyncio.sleep(0.01)
    telling.cancel()
    assert cluster.recorded == [*recorded, "Last"]


async def test_an_object_that_was_deleted_before_its_patch_is_no_error(make, kube, cluster):
    """The retry then reads that it is gone; an alert counts errors."""
    cluster.deleted = {"demo"}
    known, lanes, metrics = ObjectCache(), Queues(time.monotonic), ControllerMetrics()
    actor = Applier(kube, known, EventHandlers(known, lanes), lanes, Recorder(kube, metrics), metrics)
    project = make.project("demo").raw
    known.put(kinds.PROJECT, project)
    with pytest.raises(Retry, match="Project demo was deleted") as caught:
        decision = Decision(status={"activeDeployment": "dep-1"})
        await actor.apply(kinds.PROJECT, project, event_map.project("demo"), decision)
    assert is_expected(caught.value)
    assert known.get(kinds.PROJECT, "demo") is None


async def test_conflict_does_not_hide_a_build_of_the_same_source(make, kube, cluster, config):
    """A second Deployment would build the same source again."""
    cluster.changed = {"dep-a"}
    known, lanes, metrics = ObjectCache(), Queues(time.monotonic), ControllerMetrics()
    actor = Applier(kube, known, EventHandlers(known, lanes), lanes, Recorder(kube, metrics), metrics)
    earlier, later = (
        make.deployment(
            f"dep-{letter}",
            built=False,
            status={"sourceKey": "key"},
            metadata={"resourceVersion": "5", "creationTimestamp": f"2026-10-03T10:00:0{second}Z"},
        )
        for second, letter in enumerate("ab")
    )
    for deployment in (earlier, later):
        known.put(kinds.DEPLOYMENT, deployment.raw)
    view = BuildQueueView(known, config)
    with pytest.raises(errors.KubeConflict):
        await actor.apply(
            kinds.DEPLOYMENT, earlier.raw, event_map.deployment("dep-a"), Decision(status={"phase": "Failed"})
        )
    assert known.get(kinds.DEPLOYMENT, "dep-a") is None
    building = find_building(later, "key", view.snapshot().deployments)
    assert building is not None and building.name == "dep-a"
    # The version that the next reconcile reads counts again, whether it is newer or not.
    assert known.put(kinds.DEPLOYMENT, earlier.raw) is True
    assert known.get(kinds.DEPLOYMENT, "dep-a") is not None


async def test_a_denied_creation_names_its_kind(make):
    """A webhook's denial has no details; the reconciler of a Deployment asks whether a pod was denied."""
    testbed = ReconcilerTestbed()
    testbed.kube.refused["create", kinds.POD] = errors.from_status(
        400, {"message": 'admission webhook "x" denied the request: no'}
    )
    with pytest.raises(errors.AdmissionDenied) as caught:
        await testbed.applier.create(Create(kinds.POD, make.pod().raw), "uid-dep-a")
    assert caught.value.details["kind"] == "pods"
