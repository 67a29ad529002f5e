"""A pod that waits for a build gets the variables of its own build only."""

import asyncio
import json

import pytest
from aiohttp.test_utils import TestClient, TestServer

from controller.deployment.warm import waiters
from controller.observability.health import HealthReadings, application
from controller.observability.metrics import ControllerMetrics
from crds import names, pod_tokens
from kube import errors

KEY = "k" * 32
POD = "warm-demo-1-a1"
VARIABLES = {"CREWYARD_DEPLOYMENT": "dep-a", "CREWYARD_TOKEN": "t", "CREWYARD_BUILD": "{}"}
QUESTION = {"pod_uid": "u", "wait_seconds": 5}


class PodReader:
    """The pods that the kube-apiserver has."""

    def __init__(self):
        self.pods = {POD: {"metadata": {"name": POD, "uid": "u", "labels": {names.LABEL_WARM_BUILDER: "f"}}}}
        self.read = asyncio.Event()
        self.broken = False

    async def get(self, _kind, name):
        self.read.set()
        if self.broken:
            raise errors.KubeUnavailable(503, "ServiceUnavailable", "no answer")
        return self.pods.get(name)

    def bind(self):
        metadata = self.pods[POD]["metadata"]
        metadata["labels"][names.LABEL_DEPLOYMENT] = "dep-a"
        metadata["annotations"] = {names.ANNOTATION_BUILD: json.dumps({**VARIABLES, "PATH": "/evil"})}


@pytest.fixture
def pods():
    return PodReader()


@pytest.fixture
def calls():
    return waiters.Waiters()


@pytest.fixture
async def ask(pods, calls):
    """Ask as the pod."""
    state = {"active": True}
    routes = waiters.routes(calls, (KEY,), {"crews": pods}, lambda: state["active"])
    readings = HealthReadings(0.0, None, 0.0, (), 0.0, True)
    async with TestClient(
        TestServer(application(lambda: readings, ControllerMetrics().registry, routes))
    ) as client:

        async def ask(body=QUESTION, kind="builder", name=POD, key=KEY, path=POD, active=True):
            state["active"] = active
            token = pod_tokens.mint(key, kind, "crews", name, "uid-demo", 4_000_000_000)
            headers = {"Authorization": f"Bearer {token}"}
            url = f"/internal/v1/builders/{path}/wait"
            async with client.post(url, data=json.dumps(body), headers=headers) as response:
                return response.status, await response.json()

        yield ask


async def test_a_waiting_pod_is_answered_at_the_binding(ask, pods, calls):
    asked = asyncio.create_task(ask())
    await pods.read.wait()
    calls.assign("another", {})
    calls.assign("u", VARIABLES)
    assert await asked == (200, {"state": "bound", "variables": VARIABLES})


async def test_an_answer_that_got_lost_is_given_again_by_another_controller(ask, pods):
    pods.bind()
    for _ in range(2):
        assert await ask() == (200, {"state": "bound", "variables": VARIABLES})


async def test_a_pod_without_a_build_asks_again(ask):
    assert await ask({**QUESTION, "wait_seconds": 0}) == (200, {"state": "waiting"})


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({"kind": "build"}, 401),
        ({"kind": "warm"}, 401),
        ({"name": "warm-demo-2-a1"}, 401),
        ({"path": "warm-demo-2-a1"}, 401),
        ({"key": "x" * 32}, 401),
        ({"body": {**QUESTION, "pod_uid": "of-an-older-pod"}}, 404),
        ({"active": False}, 503),
        ({"body": {}}, 400),
        ({"body": {**QUESTION, "wait_seconds": float("inf")}}, 400),
    ],
)
async def test_others_get_nothing(ask, pods, change, status):
    pods.bind()
    assert (await ask(**change))[0] == status


async def test_an_apiserver_that_does_not_answer_is_asked_again(ask, pods):
    pods.broken = True
    assert (await ask())[0] == 503


async def test_the_waiting_pods_are_bounded(ask, calls, monkeypatch):
    monkeypatch.setattr(waiters, "MAX_WAITERS", 0)
    assert (await ask())[0] == 503
