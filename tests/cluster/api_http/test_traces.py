"""Traces through the whole API server, from the objects of a kube-apiserver to a receiver on loopback."""

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime

import pytest
from aiohttp import web

from crds.kinds import DEPLOYMENT, RUN
from crds.names import name_of
from crds.runs import trace_context
from crds.times import format_second
from tests.cluster.api_http.notifications.test_notifications import end_run
from tests.testbed.ports import free_port
from tests.unit.api.telemetry.conftest import GOOD, SpanReceiver

PARENT = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


@pytest.fixture
def port() -> int:
    return free_port()


@pytest.fixture
def settings(port) -> dict[str, str]:
    prices = {"CREWYARD_PRICES": '{"currency": "EUR", "per_run": 2.5}'}
    return {
        "CREWYARD_NET_ALLOW": f"{GOOD}:{port}",
        "CREWYARD_OTLP_ENDPOINT": f"http://{GOOD}:{port}",
        **prices,
    }


@pytest.fixture
async def receiver(port) -> AsyncIterator[SpanReceiver]:
    made = SpanReceiver()
    made.port = port
    await made.start()
    yield made
    await made.stop()


async def metrics(testbed) -> bytes:
    return (await testbed.call("GET", "/metrics"))[1]


async def received(receiver: SpanReceiver, count: int) -> None:
    while len(receiver.requests) < count:
        await asyncio.sleep(0.1)


async def test_the_trace_of_a_run_reaches_a_receiver_that_was_away(testbed, receiver):
    await testbed.data("POST", "/v1/projects", {"name": "crew"})
    receiver.answers.append(web.Response(status=503))
    await end_run(testbed.kube, "run-a")
    await received(receiver, 2)
    assert receiver.requests[0] == receiver.requests[1]
    assert [name for name, _ in receiver.ids()] == ["run crew", "queue"]
    root = receiver.requests[1].resource_spans[0].scope_spans[0].spans[0]
    shown = await testbed.data("GET", "/v1/runs/run_a")
    values = {item.key: item.value for item in root.attributes}
    assert values["crewyard.run.cost"].double_value == shown["usage"]["cost"] == 2.5
    assert values["crewyard.run.currency"].string_value == "EUR"
    assert root.trace_id.hex() == shown["trace_id"]
    assert (root.status.code, root.status.message) == (2, "CrewFailed")
    async with asyncio.timeout(60):
        # It is counted once the response has arrived.
        while b'crewyard_trace_exports_total{result="exported"} 1.0' not in await metrics(testbed):
            await asyncio.sleep(0.05)


async def test_a_run_is_below_the_span_of_its_caller(testbed, receiver):
    await testbed.data("POST", "/v1/projects", {"name": "crew"})
    spec = {"project": "crew", "source": {"archive": {"upload": "upl_1"}}}
    await testbed.kube.create(DEPLOYMENT, {"metadata": {"name": "dep-a"}, "spec": spec})
    await testbed.mark_built("crew", "dep-a")
    while await testbed.store.deployments.get("dep-a") is None:
        await asyncio.sleep(0.05)
    body, headers = {"deployment": "dep_a"}, {"traceparent": PARENT}
    started = await testbed.data("POST", "/v1/runs", body, headers=headers)
    assert started["trace_id"] == PARENT[3:35]
    raw = await testbed.kube.get(RUN, name_of(started["id"]))
    assert raw["metadata"]["annotations"]["crewyard.dev/traceparent"] == PARENT
    ended = {"phase": "Canceled", "project": "crew", "deployment": "dep-a", "durationMs": 0}
    ended["completionTime"] = format_second(datetime.now(UTC))
    await testbed.kube.patch(RUN, name_of(started["id"]), {"status": ended}, "status")
    await received(receiver, 1)
    root = receiver.requests[0].resource_spans[0].scope_spans[0].spans[0]
    assert (root.trace_id.hex(), root.parent_span_id.hex()) == (PARENT[3:35], PARENT[36:52])
    assert root.span_id.hex() == trace_context.span_id(raw["metadata"]["uid"], "run")
