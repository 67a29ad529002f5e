"""What the final status records about a bound pod that was deleted before a status named it."""

import time

import pytest
from aiohttp import web

from controller.observability.metrics import ControllerMetrics
from controller.run.decide import decide
from controller.run.observe import RunReader
from controller.runtime import event_map
from controller.runtime.apply import Applier
from controller.runtime.cache import ObjectCache
from controller.runtime.event_handlers import EventHandlers
from controller.runtime.queues import Queues
from controller.runtime.recorder import Recorder
from crds import kinds
from crds.names import LABEL_DEPLOYMENT, LABEL_PROJECT, LABEL_RUN, LABEL_WARM
from tests.testbed.apiserver import serving

PODS = "/api/v1/namespaces/crews/pods"
LABELS = {LABEL_RUN: "run-a", LABEL_WARM: "f0", LABEL_PROJECT: "demo", LABEL_DEPLOYMENT: "dep-a"}


async def nothing(_: web.Request) -> web.Response:
    return web.json_response({"items": [], "metadata": {"resourceVersion": "900"}})


async def missing(_: web.Request) -> web.Response:
    return web.json_response({"reason": "NotFound", "message": "no such pod"}, status=404)


@pytest.fixture
async def kube():
    """An apiserver without pods."""
    async with serving([web.get(PODS, nothing), web.get(PODS + "/{name}", missing)]) as opened:
        yield opened


@pytest.fixture
def reader(make, kube):
    cache, queues, metrics = ObjectCache(), Queues(time.monotonic), ControllerMetrics()
    cache.put(kinds.PROJECT, make.project(status={"activeDeployment": "dep-b"}).raw)
    cache.put(kinds.POD, make.pod("warm-a", metadata={"labels": LABELS}).raw)
    handlers = EventHandlers(cache, queues)
    applier = Applier(kube, cache, handlers, queues, Recorder(kube, metrics), metrics)
    return RunReader(applier, event_map.run("run-a"))


@pytest.mark.parametrize(
    ("spec", "status", "phase"),
    [
        ({"cancel": True}, {}, "Canceled"),
        ({}, {}, "Failed"),
        ({}, {"result": {"outcome": "succeeded", "durationMs": 7}}, "Succeeded"),
    ],
)
@pytest.mark.parametrize("live", [True, False])
async def test_the_status_names_the_pod_that_claimed_the_run(make, reader, config, spec, status, phase, live):
    claim = {"podUid": "uid-warm-a", "time": make.ago(1)}
    run = make.run(project="demo", status={"claim": claim, **status}, **spec)
    assert reader.applier.cache.remove(kinds.POD, "warm-a", "uid-warm-a")
    decision = decide(await reader.observe(run, live), make.now, config)
    assert decision.status["phase"] == phase
    assert decision.status["pod"] == {"name": "warm-a", "uid": "uid-warm-a"}
    # Not the deployment that is active by now.
    assert (decision.status["project"], decision.status["deployment"]) == ("demo", "dep-a")


async def test_the_status_names_a_pod_whose_deletion_only_the_apiserver_knows(make, reader, config):
    claim = {"podUid": "uid-warm-a", "time": make.ago(1)}
    run = make.run(project="demo", status={"claim": claim}, cancel=True)
    decision = decide(await reader.observe(run, live=True), make.now, config)
    assert decision.status["pod"] == {"name": "warm-a", "uid": "uid-warm-a"}
