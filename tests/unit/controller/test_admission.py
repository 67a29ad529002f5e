"""The admission against an apiserver that refuses what it records, because the Run has changed."""

import asyncio
import time

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from kubernetes.aio import client

from controller import triggers
from controller.apply import Actor
from controller.known import Known
from controller.lanes import Lanes
from controller.metrics import Metrics
from controller.observer import Observer
from controller.recorder import Recorder
from controller.run.admission import AdmissionReconciler
from crds import errors, kinds
from crds.kube import Kube

PODS = "/api/v1/namespaces/crews/pods"
STATUS = "/apis/crewyard.dev/v1alpha1/namespaces/crews/runs/run-a/status"


async def _none(_: web.Request) -> web.Response:
    return web.json_response({"items": [], "metadata": {"resourceVersion": "900"}})


async def _made(request: web.Request) -> web.Response:
    body = await request.json()
    made = {"uid": "uid-pod", "resourceVersion": "901", "creationTimestamp": "2026-11-21T12:00:00Z"}
    return web.json_response({**body, "metadata": {**body["metadata"], **made}}, status=201)


async def _changed(_: web.Request) -> web.Response:
    return web.json_response({"reason": "Conflict", "message": "it has changed"}, status=409)


@pytest.fixture
async def kube():
    app = web.Application()
    app.add_routes([web.get(PODS, _none), web.post(PODS, _made), web.patch(STATUS, _changed)])
    async with TestServer(app) as server:
        host = str(server.make_url("")).rstrip("/")
        opened = Kube(client.ApiClient(client.Configuration(host=host)), "crews")
        yield opened
        await opened.close()


async def test_a_run_that_changed_while_it_got_its_pod_is_looked_at_again_soon(make, config, kube):
    ahead = [0.0]
    known, lanes, metrics = Known(), Lanes(lambda: time.monotonic() + ahead[0]), Metrics()
    actor = Actor(kube, known, Observer(known, lanes), lanes, Recorder(kube, metrics), metrics)
    known.put(kinds.PROJECT, make.project(status={"activeDeployment": "dep-a"}).raw)
    known.put(kinds.DEPLOYMENT, make.deployment().raw)
    known.put(kinds.RUN, make.run(project="demo").raw)
    with pytest.raises(errors.Conflict):
        await AdmissionReconciler(actor, config).reconcile("demo")
    # What was believed of it is forgotten, so that only a look at the Run itself brings it back.
    assert known.get(kinds.RUN, "run-a") is None
    async with asyncio.timeout(2):
        taken = await lanes.main.take()
        lanes.main.done(taken)
        ahead[0] = 5.0
        assert taken == triggers.run("run-a")  # The pod's creation was seen.
        assert await lanes.main.take() == triggers.run("run-a")
