"""Tests of retention: a crash between any two steps loses nothing and leaves nothing behind."""

import asyncio
import os
import shutil
import sys
import time
from collections.abc import AsyncIterator
from contextlib import suppress
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select

from api.maintenance import retention as retain
from api.maintenance.maintenance_round import MaintenanceRound
from api.maintenance.orphan_blobs import delete_orphans
from api.maintenance.retention import RecordRetention, RetentionPolicy
from api.metrics import ApiMetrics
from api.store.accounting import account_batch
from api.store.errors import StoreUnavailable
from api.store.index.deletion.expired_records import ProjectRetention
from api.store.index.idempotency import Idempotency
from api.store.index.runs.runs import RunRequest
from api.store.index.storage_stats import ROWS
from api.store.logs.build_logs import Chunk
from api.store.logs.event_log import NewEvent
from api.store.sql.schema import (
    archives,
    artifacts,
    claims,
    deployments,
    idempotency,
    remains,
    run_counts,
    runs,
    tombstones,
    uploads,
    usage_days,
)
from api.store.store import Store
from crds.installation_limits import InstallationLimits
from crds.limits import PlanLimits, Plans
from tests.unit.api.store import builders
from tests.unit.api.store.postgres_server import PostgresServer
from tests.unit.api.store.power_cuts import Cutter, PowerCut

DAY = 24 * 3600.0
MONTH = 30 * DAY
LATER = builders.later(MONTH + 60)
PLACES = {
    "runs": (runs, "name"),
    "claims": (claims, "run"),
    "artifacts": (artifacts, "run"),
    "archives": (archives, "run"),
    "uploads": (uploads, "id"),
    "remains": (remains, "name"),
    "tombstones": (tombstones, "name"),
    "deployments": (deployments, "name"),
}


async def chunks(data: bytes) -> AsyncIterator[bytes]:
    yield data


async def rows(store: Store) -> dict[str, list[str]]:
    found = {}
    async with store.database.read() as connection:
        for name, (table, column) in PLACES.items():
            found[name] = sorted((await connection.execute(select(table.c[column]))).scalars())
    return found


async def keys(store: Store) -> list[str]:
    return sorted([blob.key async for page in store.blobs.list_folder("crews") for blob in page])


async def create_ended_run(store: Store, at: datetime, spec: Any = None) -> str:
    """Create a run with events and two artifacts that ended at `at`; its object is deleted."""
    run = await builders.claim_run(store)
    async with store.events.open_writer(run) as log:
        await log.append([NewEvent(n, "log", {"message": f"line {n}"}) for n in range(1, 41)])
        for version, name in enumerate(("a", "b"), 1):
            blob = f"crews/runs/{run}/{name}"
            await store.blobs.put(blob, chunks(b"abc"), 3, None)
            await store.artifacts.put(run, name, 3, name, "text/plain", False, blob, at)
            await log.append_artifact(version, {"name": name})
    ended = {"completionTime": at.isoformat().replace("+00:00", "Z")}
    await store.run_writer.observe(builders.run(run, "Succeeded", **ended), at)
    await store.run_writer.mark_deleted(run, "run-uid", at)
    return run


async def scenario(store: Store) -> tuple[str, str]:
    """Create data to delete and data to keep; return an old and a new run."""
    await builders.add_demo_project(store)
    old = await create_ended_run(store, builders.later(5))
    new = await create_ended_run(store, builders.later(MONTH - 3600))
    taken_back, _ = await store.runs.create(RunRequest("demo", "dep-a", {}), builders.NOW, None)
    await store.runs.withdraw(taken_back, builders.NOW, object_absent=True)
    for late in (0, MONTH):
        row = await store.uploads.create("demo", 3, None, builders.later(late), builders.later(late + 60))
        await store.receive(row.id, chunks(b"abc"), builders.later(late))
    await store.deployments.observe(builders.deployment("dep-b"))
    await store.build_logs.append("dep-b", "pod", "assemble", [Chunk(1, "text\n")])
    await account_batch(store)
    await store.deployments.remove("dep-b", "uid-of-dep-b")
    return old, new


async def check_run(store: Store, run: str) -> None:
    """Check that the run exists with all its data."""
    page = await store.events.read(run, 0, 99)
    assert [event.id for event in page.events] == list(range(1, 45)) and page.ended
    assert [event.data["message"] for event in page.events[1:41]] == [f"line {n}" for n in range(1, 41)]
    for row in (await store.artifacts.page(run, 0, 9)).items:
        assert [part async for part in store.blobs.read(row.blob)] == [b"abc"]


async def work(store: Store, record_ttl: float = MONTH) -> None:
    keeper = MaintenanceRound(store, RetentionPolicy(record_ttl), 300)
    while await keeper.run_once(LATER):
        pass


class StoreCopies:
    """StoreCopies of one filled store: each crash starts from the same state."""

    def __init__(self, place: Path, server: PostgresServer | None, s3: Any) -> None:
        self._place = place
        self._server = server
        self._s3 = s3
        self._count = 0
        self._name = ""
        self._blobs: dict[str, bytes] = {}

    async def fill(self) -> tuple[str, str]:
        if self._server:
            self._name = self._server.database("filled").split("@/")[1].split("?")[0]
        store = await self._open(self._place / "first", self._name)
        found = await scenario(store)
        if self._server:
            for key in await keys(store):
                self._blobs[key] = b"".join([part async for part in store.blobs.read(key)])
        await store.close()
        # The last connection deletes these files, in its own thread.
        async with asyncio.timeout(60):
            while list((self._place / "first").glob("index.sqlite3-*")):
                await asyncio.sleep(0.01)
        return found

    async def copy(self) -> tuple[Store, Path, str]:
        self._count += 1
        place, name = self._place / str(self._count), ""
        if self._server:
            name = self._server.database(self._name).split("@/")[1].split("?")[0]
        else:
            shutil.copytree(self._place / "first", place)
        self._bucket = f"s3://{self._s3.new().name}/x" if self._server else None
        store = await self._open(place, name)
        for key, data in self._blobs.items():
            await store.blobs.put(key, chunks(data), len(data), None)
        return store, place, name

    async def open(self, place: Path, name: str) -> Store:
        return await self._open(place, name)

    _bucket: str | None = None

    async def _open(self, place: Path, name: str) -> Store:
        if self._server and self._bucket is None:
            self._bucket = f"s3://{self._s3.new().name}/x"
        url = self._server.url(name) if self._server else None
        return await Store.open(place, "crews", url, self._bucket)


@pytest.fixture(params=["sqlite", "postgres"])
def copies(request: pytest.FixtureRequest, tmp_path: Path) -> StoreCopies:
    if request.param == "sqlite":
        return StoreCopies(tmp_path, None, None)
    return StoreCopies(tmp_path, request.getfixturevalue("postgres"), request.getfixturevalue("bucket"))


async def test_crash_after_each_effect(copies: StoreCopies, monkeypatch: pytest.MonkeyPatch) -> None:
    """Slow: a copy of the store for each effect."""
    old, new = await copies.fill()
    after, done = 0, False
    end: Any = None
    while not done:
        store, place, name = await copies.copy()
        cutter = Cutter(after or None)
        with monkeypatch.context() as patched:
            cutter.patch(store, patched)
            try:
                await work(store)
                done = after > 0
            except PowerCut:
                pass
        await check_run(store, new)
        await store.close()
        store = await copies.open(place, name)
        await check_run(store, new)
        if await store.runs.get(old):
            await check_run(store, old)
        await work(store)
        await check_run(store, new)
        found = await rows(store), await keys(store)
        if after == 0:
            end = found
            assert cutter.seen > 15
            check(found, old, new)
        assert found == end
        assert (await store.events.read(new, 0, 1)).total == 44
        assert (await store.build_logs.read("dep-b")).text == ""
        await store.close()
        # All effects with SQLite; with PostgreSQL, which is slower, every sixth.
        after += 6 if name else 1


def check(found: Any, old: str, new: str) -> None:
    tables, blobs = found
    assert tables["runs"] == tables["claims"] == tables["archives"] == [new]
    assert tables["artifacts"] == [new, new]
    assert tables["remains"] == []
    assert (len(tables["uploads"]), len(tables["tombstones"])) == (1, 2)
    assert old in tables["tombstones"] and tables["deployments"] == ["dep-a"]
    folders = [key.split("/")[2] for key in blobs]
    assert sorted(set(folders)) == sorted([new, tables["uploads"][0]]) and len(blobs) == 4


async def test_project_retention_and_usage(store: Store) -> None:
    await builders.add_demo_project(store)
    run = await create_ended_run(store, builders.later(5))
    await account_batch(store)
    async with store.database.read() as connection:
        used = (await connection.execute(select(usage_days))).all()
    await store.projects.observe(builders.project(active="dep-a", retention={"records": "1000h"}))
    await work(store)
    await check_run(store, run)
    await store.projects.observe(builders.project(active="dep-a", retention={"records": "700h"}))
    await work(store, record_ttl=10 * MONTH)
    assert await store.runs.get(run) is None
    assert (await store.runs.page(0, 10)).total == 0
    async with store.database.read() as connection:
        assert (await connection.execute(select(usage_days))).all() == used != []
        assert (await connection.execute(select(run_counts))).all() == []


async def test_unaccounted_runs_and_runs_with_object_stay(store: Store) -> None:
    await builders.add_demo_project(store)
    unaccounted = await create_ended_run(store, builders.later(5))
    await work(store)
    await check_run(store, unaccounted)
    present = await builders.create_run(store)
    await store.run_writer.observe(
        builders.run(present, "Failed", completionTime="2026-11-21T10:00:30Z"), builders.NOW
    )
    await account_batch(store)
    await work(store)
    assert await store.runs.get(unaccounted) is None
    assert await store.runs.get(present) is not None
    assert await store.runs.prunable(LATER, 9, project="demo") == await store.runs.prunable(
        LATER, 9, excluded_projects=["x"]
    )
    assert await store.runs.prunable(LATER, 9, excluded_projects=["demo"]) == ()


async def test_round_is_bounded_and_resumes(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retain, "PROJECTS_PER_ROUND", 2)
    monkeypatch.setattr(retain, "RUNS_PER_TRANSACTION", 3)
    for name in ("", "b", "c", "d", "e"):
        for number in range(4):
            spec = {"project": name} if name else {"deployment": "dep-unknown"}
            ended = builders.run(f"run-{name}-{number}", "Failed", spec=spec)
            ended.raw["status"].update(project=None, deployment=None, completionTime="2026-11-21T10:00:30Z")
            ended.raw["metadata"]["ownerReferences"] = []  # type: ignore[index]
            await store.run_writer.observe(ended, builders.NOW)
            await store.run_writer.mark_deleted(f"run-{name}-{number}", "run-uid", builders.NOW)
    await account_batch(store)
    retainer = RecordRetention(store, RetentionPolicy(MONTH))
    assert [await retainer.run_once(LATER) for _ in range(7)] == [6, 6, 3, 2, 2, 1, 0]


async def test_upload_of_waiting_build_stays(store: Store) -> None:
    await builders.add_demo_project(store)
    row = await store.uploads.create("demo", 3, None, builders.NOW, builders.later(60))
    row = await store.receive(row.id, chunks(b"abc"), builders.NOW)
    waiting = builders.deployment("dep-w", "Building")
    waiting.spec["source"] = {"archive": {"upload": row.id}}  # type: ignore[index]
    await store.deployments.observe(waiting)
    await work(store)
    assert await keys(store) == [row.blob]
    built = builders.deployment("dep-w", "Failed")
    built.spec["source"] = {"archive": {"upload": row.id}}  # type: ignore[index]
    await store.deployments.observe(built)
    await account_batch(store)
    await work(store)
    assert await keys(store) == [] and await store.uploads.get(row.id) is None


async def test_orphan_blobs_are_deleted(tmp_path: Path) -> None:
    store = await Store.open(tmp_path, "crews")
    await builders.add_demo_project(store)
    live, run = await builders.claim_run(store), await create_ended_run(store, builders.later(5))
    await account_batch(store)
    now = datetime.now(builders.NOW.tzinfo)
    old = now - timedelta(days=5)
    assert await store.expired_records.tracking_start(old) == old
    kept = [f"crews/runs/{live}/early", f"crews/runs/{run}/a", f"crews/runs/{run}/b", "crews/else/x"]
    lost = [f"crews/runs/{run}/c", "crews/runs/run-x/d", "crews/uploads/upl_x", "crews/incoming/upl_x"]
    for key in (*kept, *lost, "crews/runs/run-y/older"):
        await store.blobs.put(key, chunks(b"abc"), 3, None)
    assert await delete_orphans(store, now) == 0
    for path in (tmp_path / "blobs").rglob("*"):
        days = 9 if path.name == "older" else 2
        os.utime(path, (time.time() - days * DAY,) * 2)
    assert await delete_orphans(store, now) == 3
    for path in (tmp_path / "blobs").rglob("*"):
        os.utime(path, (time.time() - 9 * DAY,) * 2) if path.name == "older" else None
    assert await keys(store) == sorted([*kept, f"crews/runs/{run}/c", "crews/runs/run-y/older"])
    await MaintenanceRound(store, RetentionPolicy(MONTH), 300).run_once(builders.later(9999))
    assert await delete_orphans(store, now) == 1
    await check_run(store, run)
    await store.close()


async def test_stale_parts_are_deleted(tmp_path: Path) -> None:
    program = (
        "import asyncio, os, sys, pathlib\n"
        "from api.store.blobs.backends import directory_blobs\n"
        "async def chunks():\n"
        "    yield bytes(3 << 20)\n"
        "    while not any(path.is_file() for path in pathlib.Path(sys.argv[1]).rglob('*')):\n"
        "        await asyncio.sleep(0.01)\n"
        "    os._exit(9)\n"
        "blobs = directory_blobs(pathlib.Path(sys.argv[1]))\n"
        "asyncio.run(blobs.put('crews/uploads/upl_a', chunks(), 9 << 20, None))\n"
    )
    started = await asyncio.create_subprocess_exec(sys.executable, "-c", program, str(tmp_path / "blobs"))
    assert await started.wait() == 9
    left = [path for path in (tmp_path / "blobs").rglob("*") if path.is_file()]
    assert len(left) == 1
    store = await Store.open(tmp_path, "crews")
    now = datetime.now(builders.NOW.tzinfo)
    await store.expired_records.tracking_start(now - timedelta(days=5))
    assert (await delete_orphans(store, now), left[0].exists()) == (0, True)
    assert (await delete_orphans(store, now + timedelta(days=2)), left[0].exists()) == (1, False)
    await store.close()


@pytest.mark.parametrize(
    ("asked", "seconds"),
    [
        (None, 600),
        ({}, 600),
        ({"runs": "1h"}, 3600),
        ({"records": "1m"}, 60),
        ({"runs": "1h", "records": "30m"}, 1800),
        ({"runs": "nonsense", "records": 7}, 600),
    ],
)
def test_object_ttl_is_at_most_record_ttl(asked: Any, seconds: float) -> None:
    project = None if asked is None else ProjectRetention(asked=asked)
    assert RetentionPolicy(MONTH).object_seconds(project) == seconds


ENDLESS = {"runs": "999999h", "records": "999999h"}


def test_a_project_keeps_nothing_longer_than_the_installation_allows() -> None:
    limits = InstallationLimits(retained_run_seconds=3600, retained_record_seconds=7200)
    policy, endless = RetentionPolicy(5000, 600, limits), ProjectRetention(asked=ENDLESS)
    assert (policy.object_seconds(endless), policy.record_seconds(endless)) == (3600, 7200)
    # Never less than the installation's own time.
    longer = RetentionPolicy(10_000, 600, limits)
    assert longer.record_seconds(endless) == 10_000
    assert longer.record_seconds(ProjectRetention(asked={"records": "1h"})) == 3600


@pytest.mark.parametrize(
    ("plan", "asked", "objects", "records"),
    [
        ("trial", {}, 60, 7200),
        ("trial", ENDLESS, 60, 7200),
        ("trial", {"runs": "30s", "records": "1h"}, 30, 3600),
        ("trial", {"records": "nonsense"}, 60, 7200),
        ("pro", ENDLESS, 7 * DAY, 3650 * DAY),
        ("pro", {}, 600, MONTH),
    ],
)
def test_a_plan_lowers_the_retention_of_its_projects(
    plan: str, asked: dict[str, str], objects: float, records: float
) -> None:
    """Also where a Project sets none: the installation's own time is for plans without a limit."""
    lowered = {"retained_run_seconds": 60, "retained_record_seconds": 7200}
    policy = RetentionPolicy(
        MONTH, plans=Plans({**Plans().by_name, "trial": PlanLimits(60, 2, limits=lowered)})
    )
    project = ProjectRetention(plan, asked)
    assert (policy.object_seconds(project), policy.record_seconds(project)) == (objects, records)
    assert policy.record_seconds(None) == MONTH


async def test_the_round_keeps_records_as_long_as_the_plan_of_their_project(store: Store) -> None:
    await builders.add_demo_project(store)
    await create_ended_run(store, builders.later(5))
    await account_batch(store)
    lowered = PlanLimits(60, 2, limits={"retained_record_seconds": 3600})

    async def removed_after(seconds: float, **plans: PlanLimits) -> int:
        policy = RetentionPolicy(MONTH, plans=Plans({**Plans().by_name, **plans}))
        return await RecordRetention(store, policy).run_once(builders.later(seconds))

    assert await removed_after(3700) == 0
    assert await removed_after(3700, pro=lowered) == 0
    assert await removed_after(3500, free=lowered) == 0
    assert await removed_after(3700, free=lowered) == 1


async def test_storage_stats(store: Store) -> None:
    await scenario(store)
    found = await store.storage_meter.measure(builders.later(MONTH))
    assert (found.rows["run"], found.rows["artifact"], found.rows["remains"]) == (2, 4, 2)
    assert (found.bytes["artifact"], found.bytes["upload"], found.bytes["events"]) == (12, 6, 0)
    assert int(found.oldest_unsealed) == int(MONTH - 5)
    await work(store)
    found = await store.storage_meter.measure(LATER)
    kept = {"run": 1, "sealed": 1, "tombstone": 2, "artifact": 2, "upload": 1, "remains": 0}
    assert found.rows == kept and found.bytes["events"] > 0
    assert found.oldest_unsealed == 0 and store.storage_meter.last is found


async def test_full_disk_is_freed_without_sealing(tmp_path: Path) -> None:
    store = await Store.open(tmp_path, "crews")
    old, new = await scenario(store)

    async def full(*_: Any) -> None:
        raise StoreUnavailable("the disk is full")

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(store.blobs, "put", full)
        keeper = MaintenanceRound(store, RetentionPolicy(MONTH), 300)
        with pytest.raises(StoreUnavailable, match="the disk is full"):
            await keeper.run_once(LATER)
        with suppress(StoreUnavailable):
            while await keeper.run_once(LATER):
                pass
    assert await store.runs.get(old) is None
    assert not [key for key in await keys(store) if old in key]
    await check_run(store, new)
    await work(store)
    assert await store.archives.find(new) is not None
    await store.close()


async def test_idempotency_keys_expire_in_batches(store: Store) -> None:
    uses = [Idempotency("owner", f"key-{number}", "hash") for number in range(5)]
    for number, use in enumerate(uses):
        await store.idempotency.put(use, f"run-{number}", builders.NOW if number else builders.later(DAY))
    more = [await store.idempotency.delete_expired(builders.later(DAY + 60), 3) for _ in range(2)]
    assert more == [True, False]
    async with store.database.read() as connection:
        assert (await connection.execute(select(idempotency.c.key))).scalars().all() == ["key-0"]


async def test_removed_project_leaves_tombstones_only(tmp_path: Path) -> None:
    store = await Store.open(tmp_path, "crews")
    await scenario(store)
    await builders.claim_run(store)
    await store.build_logs.append("dep-a", "pod", "assemble", [Chunk(1, "text\n")])
    await store.projects.remove("demo", "project-1", builders.NOW)
    await work(store)
    found = await rows(store)
    assert len(found.pop("tombstones")) == 4 and not any(found.values())
    files = [path for path in tmp_path.rglob("*") if path.is_file() and "index" not in path.name]
    assert [path.name for path in files] == ["lock"]
    assert list((tmp_path / "blobs").iterdir()) == []
    assert (await store.storage_meter.measure(LATER)).rows == {**dict.fromkeys(ROWS, 0), "tombstone": 4}
    metrics = ApiMetrics()
    metrics.watch_storage(lambda: store.storage_meter.last)
    text = metrics.render().decode()
    assert 'crewyard_records{kind="tombstone"} 4.0' in text and "crewyard_oldest_unsealed_seconds 0.0" in text
    await store.close()
