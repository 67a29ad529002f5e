"""Exports of ended runs and builds to a real receiver, from both databases."""

import asyncio
import os
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from aiohttp import web
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTracePartialSuccess,
    ExportTraceServiceResponse,
)

from api.outbound.guarded_post import GuardedPoster
from api.store.accounting import account_batch
from api.store.index import trace_exports as table
from api.store.index.trace_exports import GIVE_UP_AFTER, TraceExport
from api.store.logs.event_log import NewEvent
from api.store.store import Store
from api.telemetry.exporter import POLL_SECONDS, TraceExporter
from api.telemetry.settings import parse_telemetry
from crds import names
from crds.runs import trace_context
from crds.times import format_time
from egress.addresses import AddressRules
from tests.unit.api.store import builders
from tests.unit.api.telemetry.conftest import GOOD, SpanReceiver
from tests.unit.api.telemetry.trace_rows import stamp

PARENT = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
NAMES = ["run demo", "queue", "invoke_workflow demo", "invoke_agent writer"]


class ExporterTestbed:
    """An exporter to the receiver, with a virtual clock."""

    def __init__(self, store: Store, receiver: SpanReceiver, timeout: float = 60.0) -> None:
        self.store, self.now, self.results = store, datetime.now(UTC), []
        settings = parse_telemetry(receiver.endpoint, "authorization=Bearer%20abc", "")
        assert settings is not None
        self._poster = GuardedPoster(AddressRules.parse([f"{GOOD}/32"], []), timeout=timeout)
        self.exporter = TraceExporter(store, settings, self._poster, self._count)

    def _count(self, result: str, count: int) -> None:
        self.results += [str(result)] * count

    async def turn(self) -> float:
        """Export what is due, and let the time pass until the next turn."""
        self.now = max(self.now, datetime.now(UTC))
        pause = await self.exporter.export_due(self.now)
        self.now += timedelta(seconds=pause)
        return pause

    async def waiting(self) -> int:
        await self.store.trace_exports.measure()
        return self.store.trace_exports.waiting

    def close(self) -> None:
        self._poster.close()


@pytest.fixture
async def testbed(store, receiver):
    await builders.add_demo_project(store)
    await account_batch(store)
    store.trace_exports.enabled = True
    made = ExporterTestbed(store, receiver)
    yield made
    made.close()


async def end_run(store, phase: str = "Succeeded", **request) -> str:
    """End a run with one agent, accounted."""
    name = await builders.claim_run(store, **request)
    async with store.events.open_writer(name) as log:
        await log.append([NewEvent(1, "agent.started", stamp(1, agent="writer", task="write"))])
        await log.append([NewEvent(2, "agent.completed", stamp(2, agent="writer", task="write", output="x"))])
    now = datetime.now(UTC)
    await store.run_writer.observe(
        builders.run(name, phase, completionTime=format_time(now), durationMs=5000), now
    )
    await account_batch(store)
    return name


async def test_a_run_is_exported_once_with_its_spans(testbed, receiver):
    await receiver.start()
    name = await end_run(testbed.store, traceparent=PARENT)
    assert await testbed.waiting() == 1
    assert await testbed.turn() == POLL_SECONDS
    assert (testbed.results, await testbed.waiting()) == (["exported"], 0)
    assert [span for span, _ in receiver.ids()] == NAMES
    assert receiver.ids()[0][1] == trace_context.span_id("run-uid", "run")
    [headers] = receiver.headers
    assert (headers["Content-Type"], headers["authorization"]) == ("application/x-protobuf", "Bearer abc")
    resource = receiver.requests[0].resource_spans[0].resource
    assert {item.key: item.value.string_value for item in resource.attributes} == {
        "service.name": "crewyard",
        "k8s.namespace.name": "crews",
        "openinference.project.name": "demo",
    }
    root = receiver.requests[0].resource_spans[0].scope_spans[0].spans[0]
    assert (root.trace_id.hex(), root.parent_span_id.hex()) == (PARENT[3:35], PARENT[36:52])
    assert {"crewyard.run.id": names.id_of(name)}.items() <= {
        item.key: item.value.string_value for item in root.attributes
    }.items()
    assert await testbed.turn() == POLL_SECONDS
    assert len(receiver.requests) == 1


async def test_a_build_is_exported(testbed, receiver):
    await receiver.start()
    built = {"type": "Built", "status": "True", "lastTransitionTime": format_time(datetime.now(UTC))}
    stages = [{"name": "queued", "seconds": 1}, {"name": "fetch", "seconds": 2}]
    manifest = builders.deployment("dep-b", conditions=[built], stages=stages)
    await testbed.store.deployments.observe(manifest)
    await account_batch(testbed.store)
    await testbed.turn()
    assert [span for span, _ in receiver.ids()] == ["build demo", "queued", "fetch"]


async def test_the_resource_has_the_namespace_of_a_team(testbed, receiver):
    await receiver.start()
    theirs = builders.project("theirs", "project-2")
    theirs.raw["metadata"]["namespace"] = "team-a"
    await testbed.store.projects.observe(theirs)
    built = {"type": "Built", "status": "True", "lastTransitionTime": format_time(datetime.now(UTC))}
    owned = builders.deployment("dep-b", "Active", "project-2", "theirs", conditions=[built])
    owned.raw["metadata"]["namespace"] = "team-a"
    await testbed.store.deployments.observe(owned)
    await account_batch(testbed.store)
    await testbed.turn()
    [request] = receiver.requests
    attributes = request.resource_spans[0].resource.attributes
    assert {item.key: item.value.string_value for item in attributes}["k8s.namespace.name"] == "team-a"


async def test_nothing_is_queued_without_a_collector_or_long_after_the_end(testbed):
    testbed.store.trace_exports.enabled = False
    await end_run(testbed.store)
    assert await testbed.waiting() == 0
    testbed.store.trace_exports.enabled = True
    async with testbed.store.database.write() as connection:
        for hours, name in ((25, "run-old"), (23, "run-new")):
            ended = testbed.now - timedelta(hours=hours)
            await testbed.store.trace_exports.add(connection, "run", name, ended, testbed.now)
    assert [export.name for export in await testbed.store.trace_exports.due(testbed.now, 9)] == ["run-new"]


async def test_what_the_caller_does_not_record_and_what_is_deleted_is_not_sent(testbed, receiver):
    await receiver.start()
    await end_run(testbed.store, traceparent=PARENT[:-1] + "0")
    async with testbed.store.database.write() as connection:
        for kind in ("run", "build"):
            await testbed.store.trace_exports.add(connection, kind, "gone", testbed.now, testbed.now)
    await testbed.turn()
    assert (receiver.requests, await testbed.waiting()) == ([], 0)


async def test_a_receiver_that_is_down_for_an_hour_gets_everything(testbed, receiver):
    for _ in range(5):
        await end_run(testbed.store)
    until, turns = testbed.now + timedelta(hours=1), 0
    while testbed.now < until:
        assert await testbed.turn() <= 360
        await testbed.exporter.purge(testbed.now)
        turns += 1
    assert 12 <= turns <= 30
    assert set(testbed.results) == {"retried"} and await testbed.waiting() == 5
    await receiver.start()
    while await testbed.waiting():
        await testbed.turn()
    assert testbed.results.count("exported") == len(receiver.requests) == 5


async def test_what_waited_a_day_is_given_up(testbed):
    await end_run(testbed.store)
    testbed.now += GIVE_UP_AFTER - timedelta(minutes=30)
    await testbed.exporter.purge(testbed.now)
    assert await testbed.waiting() == 1
    testbed.now += timedelta(hours=1)
    await testbed.exporter.purge(testbed.now)
    assert (testbed.results, await testbed.waiting()) == (["expired"], 0)


async def test_the_queue_is_bounded_and_loses_the_oldest(testbed, monkeypatch):
    monkeypatch.setattr(table, "MAX_WAITING", 3)
    monkeypatch.setattr(table, "PURGE_BATCH_SIZE", 2)
    async with testbed.store.database.write() as connection:
        for second in range(8):
            queued = testbed.now + timedelta(seconds=second)
            await testbed.store.trace_exports.add(connection, "run", f"run-{second}", queued, queued)
    await testbed.exporter.purge(testbed.now + timedelta(minutes=1))
    left = await testbed.store.trace_exports.due(testbed.now + timedelta(minutes=1), 9)
    assert [export.name for export in left] == ["run-5", "run-6", "run-7"]
    assert testbed.results == ["expired"] * 5


@pytest.mark.parametrize(
    ("answer", "pause"),
    [
        ({"status": 429, "headers": {"Retry-After": "1800"}}, 1800),
        ({"status": 503}, 5),
        ({"status": 401}, 5),
        ({"status": 307, "headers": {"Location": "http://127.0.0.1/"}}, 5),
    ],
)
async def test_a_receiver_that_asks_for_it_gets_it_again(testbed, receiver, answer, pause):
    await receiver.start()
    receiver.answers.append(web.Response(**answer))
    await end_run(testbed.store)
    assert 0.8 * pause <= await testbed.turn() <= 1.2 * pause
    assert await testbed.turn() < 5
    assert testbed.results == ["retried", "exported"]
    assert receiver.requests[0] == receiver.requests[1]


async def test_what_a_receiver_rejects_is_not_sent_again(testbed, receiver):
    await receiver.start()
    partial = ExportTracePartialSuccess(rejected_spans=3, error_message="too old")
    body = ExportTraceServiceResponse(partial_success=partial).SerializeToString()
    receiver.answers += [web.Response(status=400), web.Response(body=body)]
    for _ in range(2):
        await end_run(testbed.store)
        await testbed.turn()
    assert (testbed.results, await testbed.waiting()) == (["rejected", "rejected"], 0)


async def test_one_that_never_succeeds_delays_none_of_the_others(testbed, receiver):
    await receiver.start()
    names = [await end_run(testbed.store) for _ in range(3)]
    receiver.answers.append(web.Response(status=503))
    testbed.exporter._failures = 1
    await testbed.turn()
    assert testbed.results == ["retried"]
    await testbed.turn()
    assert [export.name for export in await testbed.store.trace_exports.due(testbed.now, 9)][:1] != names[:1]
    while await testbed.waiting():
        await testbed.turn()
    assert testbed.results.count("exported") == 3


async def test_a_slow_receiver_is_left_alone_for_a_while(store, receiver):
    await builders.add_demo_project(store)
    store.trace_exports.enabled = True
    testbed = ExporterTestbed(store, receiver, timeout=0.2)
    await receiver.start()
    receiver.hold.clear()
    await end_run(store)
    await testbed.turn()
    assert testbed.results == ["retried"]
    receiver.hold.set()
    testbed.close()


async def test_a_private_address_is_refused(store, receiver):
    await builders.add_demo_project(store)
    store.trace_exports.enabled = True
    await end_run(store)
    await receiver.start()
    settings = parse_telemetry(receiver.endpoint, "", "")
    poster = GuardedPoster(AddressRules.parse([], []))
    assert await TraceExporter(store, settings, poster).export_due(datetime.now(UTC)) >= 4
    poster.close()
    assert receiver.requests == []


async def test_an_error_in_one_blocks_no_other(testbed, receiver, monkeypatch):
    await receiver.start()
    await end_run(testbed.store)

    async def broken(_: TraceExport) -> None:
        raise ValueError("a bug")

    monkeypatch.setattr(testbed.exporter, "_spans", broken)
    await testbed.turn()
    assert (testbed.results, await testbed.waiting()) == (["rejected"], 0)


async def test_a_process_killed_after_sending_sends_the_same_spans_again(tmp_path, database_url, receiver):
    directory = tmp_path / "data"
    store = await Store.open(directory, "crews", database_url)
    await builders.add_demo_project(store)
    await account_batch(store)
    store.trace_exports.enabled = True
    await end_run(store)
    await store.close()
    await receiver.start()
    receiver.hold.clear()
    command = [sys.executable, "-m", "tests.unit.api.telemetry.export_process", str(directory)]
    command += [receiver.endpoint, *([database_url] if database_url else [])]
    root = Path(__file__).parents[4]
    for attempt in (1, 2):
        receiver.arrived.clear()
        child = await asyncio.create_subprocess_exec(*command, cwd=root, env=dict(os.environ))
        if attempt == 1:
            await receiver.arrived.wait()
            child.kill()
        else:
            receiver.hold.set()
        await child.wait()
    assert len(receiver.requests) == 2
    assert receiver.ids(0) == receiver.ids(1)
    assert [name for name, _ in receiver.ids()] == NAMES
    again = await Store.open(directory, "crews", database_url)
    await again.trace_exports.measure()
    assert again.trace_exports.waiting == 0
    await again.close()
