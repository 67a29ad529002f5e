"""API metrics: leadership, projection age, failures and free disk space."""

import asyncio

import pytest

from api.maintenance import loops
from api.metrics import ApiMetrics
from api.projection.restarts import run_forever
from api.services import SERVICES
from api.store.sql.leader import SingleProcessLeader
from controller.observability.metrics import ControllerMetrics as OfController


async def test_replica_leads_while_its_work_runs():
    leader, seen = SingleProcessLeader(), []

    async def work():
        seen.append(leader.leading)

    await leader.lead(work)
    assert (seen, leader.leading) == ([True], False)


@pytest.mark.parametrize(
    ("heard", "elsewhere", "silence"), [({}, False, 50.0), ({"runs": 90.0}, False, 10.0), ({}, True, 0.0)]
)
def test_projection_age_counts_from_the_last_message_or_the_start(heard, elsewhere, silence):
    progress = loops.ProjectionProgress(last_event_at=heard, is_follower=lambda: elsewhere, started_at=50.0)
    assert progress.silent_seconds("runs", 100.0) == silence


def test_projection_age_and_leadership_are_read_at_scrape_time():
    metrics, leads = ApiMetrics(), [False]
    metrics.watch_projection(lambda kind, now: {"runs": 7.0}.get(kind, 0.0), lambda: leads[0])
    assert metrics.registry.get_sample_value("crewyard_leader") == 0
    leads[0] = True
    assert metrics.registry.get_sample_value("crewyard_leader") == 1
    assert metrics.registry.get_sample_value("crewyard_projection_age_seconds", {"kind": "runs"}) == 7


async def test_a_replica_that_leads_no_more_shows_no_old_counts(testbed):
    store, registry = testbed.store, testbed.client.server.app[SERVICES].metrics.registry
    store.trace_exports.waiting, store.deliveries.pending, store.deliveries.failing = 5, 6, 7
    store.storage_meter.last.oldest_unsealed = 8.0
    store.storage_meter.last.rows["remains"] = 9
    store.storage_meter.last.bytes["upload"] = 10

    def counted():
        names = ("traces_waiting", "notifications_pending", "notifications_failing")
        values = [registry.get_sample_value(f"crewyard_{name}") for name in names]
        values.append(registry.get_sample_value("crewyard_oldest_unsealed_seconds"))
        values.append(registry.get_sample_value("crewyard_records", {"kind": "remains"}))
        return [*values, registry.get_sample_value("crewyard_blob_bytes", {"kind": "upload"})]

    seen = []

    async def work():
        seen.append(counted())

    await store.leader.lead(work)
    assert seen == [[5, 6, 7, 8, 9, 10]] and counted() == [0] * 6


async def test_failed_loop_is_counted_and_restarted():
    counted = asyncio.Queue()
    times = []

    async def work():
        times.append(1)
        raise OSError("away")

    task = asyncio.create_task(run_forever("pruning", work, counted.put_nowait))
    async with asyncio.timeout(60):
        assert [await counted.get(), await counted.get()] == ["pruning", "pruning"]
    task.cancel()
    assert len(times) >= 2


def test_volume_metrics(tmp_path):
    value = (used := ApiMetrics()).registry.get_sample_value
    used.watch_volume(tmp_path)
    assert 0 < value("crewyard_data_free_bytes") <= value("crewyard_data_size_bytes")
    for directory in (None, tmp_path / "gone"):
        (none := ApiMetrics()).watch_volume(directory)
        assert none.registry.get_sample_value("crewyard_data_size_bytes") == 0


@pytest.mark.parametrize("metrics", [ApiMetrics, OfController])
async def test_event_loop_tasks_are_counted_at_scrape_time(metrics):
    value = metrics().registry.get_sample_value
    before = value("crewyard_tasks")
    task = asyncio.create_task(asyncio.sleep(60))
    assert value("crewyard_tasks") == before + 1
    task.cancel()
