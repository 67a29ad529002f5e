"""A result that a build pod reports by HTTP counts like the kubelet's, for this pod only."""

import asyncio
import json

import pytest
from aiohttp.test_utils import TestClient, TestServer

from controller.deployment.build_result import DependenciesPushed, ImageBuilt, of_assemble, of_dependencies
from controller.deployment.reported_results import (
    MAX_RESULTS,
    MAX_RESULTS_PER_DEPLOYMENT,
    ReportedResult,
    ReportedResults,
    as_ended,
    routes,
)
from controller.observability.health import HealthReadings, application
from controller.observability.metrics import ControllerMetrics
from controller.runtime import event_map
from crds import pod_tokens
from crds.objects import Pod

KEY = "k" * 32
IMAGE = "r/p@sha256:" + "ab" * 32
WORDS = {
    "outcome": "built",
    "image": IMAGE,
    "plan": {"framework": "python"},
    "tree": "t",
    "build_key": "b",
}
RUNNING = Pod({"metadata": {"name": "dep-a-a1", "uid": "u"}, "status": {"phase": "Running"}})


def test_pod_with_a_reported_result_counts_as_ended():
    result = of_assemble(as_ended(RUNNING, ReportedResult("assemble", WORDS, 0.0)), "r/p")
    assert result == ImageBuilt(IMAGE, {"framework": "python"}, "t", "b")
    pushed = as_ended(RUNNING, ReportedResult("push", {"outcome": "pushed"}, 0.0))
    assert of_dependencies(pushed, "r/p") == DependenciesPushed()
    assert of_dependencies(as_ended(RUNNING, ReportedResult("push", WORDS, 0.0)), "r/p") == result


def test_kubelet_status_precedes_a_reported_result():
    assert as_ended(RUNNING, None) is RUNNING
    ended = Pod({**RUNNING.raw, "status": {"phase": "Failed"}})
    assert as_ended(ended, ReportedResult("assemble", WORDS, 0.0)) is ended


def test_first_result_of_a_pod_is_kept_and_memory_is_bounded():
    answers = ReportedResults()
    for number in range(MAX_RESULTS + 5):
        assert answers.put(f"d{number}", "u", ReportedResult("assemble", {"n": number}, 0.0))
    assert answers.put("d10", "u", ReportedResult("assemble", {"n": -1}, 1.0))
    assert answers.get("d0", "u") is None
    assert answers.get("d10", "u").result == {"n": 10}


def test_one_token_evicts_no_result_of_others():
    answers = ReportedResults()
    answers.put("other", "u", ReportedResult("assemble", {}, 0.0))
    kept = [
        answers.put("d", f"u{number}", ReportedResult("assemble", {}, 0.0))
        for number in range(MAX_RESULTS * 2)
    ]
    assert sum(kept) == MAX_RESULTS_PER_DEPLOYMENT and answers.get("other", "u")


@pytest.fixture
async def caller():
    """A client of the call, with what it kept and what it asked to look at."""
    answers, looked, active = ReportedResults(), [], asyncio.Event()
    active.set()
    app = application(
        lambda: HealthReadings(0.0, "", 0.0, (), 0.0),
        ControllerMetrics().registry,
        routes(answers, (KEY,), {"crews": looked.append}, active.is_set),
    )
    async with TestClient(TestServer(app)) as client:
        client.answers, client.looked, client.active = answers, looked, active
        yield client


async def post(client, token, body):
    answer = await client.post(
        "/internal/v1/builds/dep-a/answer",
        data=json.dumps(body),
        headers={"Authorization": f"Bearer {token}"},
    )
    return answer.status


async def test_result_requires_the_build_token_of_its_deployment(caller):
    body = {"pod_uid": "u", "container": "assemble", "words": WORDS}
    for kind, namespace, name in (
        ("run", "crews", "dep-a"),
        ("build", "other", "dep-a"),
        ("build", "crews", "dep-b"),
    ):
        assert await post(caller, pod_tokens.mint(KEY, kind, namespace, name, "x", 1 << 40), body) == 401
    assert await post(caller, "nonsense", body) == 401
    good = pod_tokens.mint(KEY, "build", "crews", "dep-a", "x", 1 << 40)
    assert await post(caller, good, {"pod_uid": "u"}) == 400
    assert caller.answers.get("x", "u") is None and caller.looked == []
    assert await post(caller, good, body) == 200
    assert caller.answers.get("x", "u").result == WORDS and caller.looked == [event_map.deployment("dep-a")]
    assert await post(caller, good, {**body, "words": {"x": "y" * 20_000}}) == 413


async def test_standby_refuses_a_result_so_that_the_pod_asks_again(caller):
    good = pod_tokens.mint(KEY, "build", "crews", "dep-a", "x", 1 << 40)
    caller.active.clear()
    assert await post(caller, good, {"pod_uid": "u", "container": "assemble", "words": WORDS}) == 503
    assert caller.answers.get("x", "u") is None and caller.looked == []


async def test_token_reports_only_pods_of_its_deployment(caller):
    """The uid of the token, not that of the body, says whose pods it answers for."""
    token = pod_tokens.mint(KEY, "build", "crews", "dep-a", "uid-a", 1 << 40)
    body = {"pod_uid": "pod-of-b", "container": "push", "words": {"outcome": "pushed"}}
    assert await post(caller, token, body) == 200
    assert caller.answers.get("uid-b", "pod-of-b") is None
    assert await post(caller, pod_tokens.mint(KEY, "build", "crews", "dep-a", "uid-b", 1 << 40), body) == 200
    assert caller.answers.get("uid-b", "pod-of-b") is not None


async def test_results_per_deployment_are_limited(caller):
    token = pod_tokens.mint(KEY, "build", "crews", "dep-a", "uid-a", 1 << 40)
    codes = [
        await post(caller, token, {"pod_uid": f"u{number}", "container": "push", "words": {}})
        for number in range(MAX_RESULTS_PER_DEPLOYMENT + 1)
    ]
    assert codes == [200] * MAX_RESULTS_PER_DEPLOYMENT + [429]
