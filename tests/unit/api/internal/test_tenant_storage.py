"""What one run and one project may store: at the limit the rest is dropped, and others go on."""

import asyncio
import contextlib
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from api.config import ApiConfig
from api.internal import artifacts
from api.internal.context import InternalContext, PodApiError
from api.store.index.runs.runs import RunRequest
from api.store.store import Store
from api.store.volume import Volume
from crds.installation_limits import InstallationLimits
from crds.objects import Deployment, Run
from kube.client import KubeClient
from tests.unit.api.internal.conftest import Mint, Pods
from tests.unit.api.internal.test_runs import CLAIM, HOLDER, call_api, put_artifact
from tests.unit.api.store import builders

FEW_EVENTS = InstallationLimits(events=10, event_bytes=4096)
FEW_BYTES = InstallationLimits(events_bytes=20_000)
SMALL_PROJECT = InstallationLimits(project_bytes=2000)


async def claimed(pods: Pods, store: Store, bearer: Mint) -> str:
    """Return a run that the pod holds."""
    await builders.add_demo_project(store)
    run = await builders.create_run(store)
    assert (await call_api(pods, run, "claim", CLAIM, bearer(run)))[0] == 200
    return run


async def other_run(pods: Pods, store: Store, bearer: Mint) -> str:
    """Return a run of another project that the pod holds."""
    await store.projects.observe(builders.project("other", "project-2", active="dep-b"))
    body = builders.deployment("dep-b", owner=None).raw
    await store.deployments.observe(Deployment({**body, "spec": {**body["spec"], "project": "other"}}))
    request = RunRequest(project="other", deployment="dep-b", input={})
    name, _ = await store.runs.create(request, builders.NOW, None)
    manifest = builders.run(name, spec={"project": "other", "deployment": "dep-b"}).raw
    manifest["status"] = {**manifest["status"], "project": "other", "deployment": "dep-b"}
    manifest["metadata"]["ownerReferences"] = builders.owned("project-2", "other")
    await store.run_writer.observe(Run(manifest), builders.NOW)
    status, body = await call_api(pods, name, "claim", CLAIM, bearer(name))
    assert status == 200 and body["state"] == "granted", body
    return name


async def emit(pods: Pods, run: str, headers: dict[str, str], first: int, count: int, size: int = 10) -> Any:
    """Send events with these numbers; return what the service acknowledged."""
    events = [
        {"seq": number, "type": "step", "time": "2026-11-21T10:00:00Z", "data": {"text": "x" * size}}
        for number in range(first, first + count)
    ]
    status, body = await call_api(pods, run, "events", {**HOLDER, "events": events}, headers)
    assert status == 200, body
    return body["acknowledged"]


async def stored_messages(store: Store, run: str) -> list[str]:
    page = await store.events.read(run, 0, 1000)
    return [event.data.get("message", event.type) for event in page.events]


@pytest.mark.parametrize("limits", [FEW_EVENTS], ids=["count"])
async def test_events_beyond_the_count_are_acknowledged_and_not_stored(
    pods: Pods, store: Store, bearer: Mint
) -> None:
    run = await claimed(pods, store, bearer)
    assert await emit(pods, run, bearer(run), 1, 8) == 8
    # The runner must not wait: its crew would stop with it.
    assert await emit(pods, run, bearer(run), 9, 20) == 28
    assert await emit(pods, run, bearer(run), 29, 400) == 428
    messages = await stored_messages(store, run)
    assert messages[-1] == (
        "the run has reached its limit of 10 events or 2147483648 bytes; "
        "later events of this run are not stored"
    )
    assert messages[1:-1] == ["step"] * 10


@pytest.mark.parametrize("limits", [FEW_BYTES], ids=["bytes"])
async def test_events_beyond_the_bytes_are_not_stored(pods: Pods, store: Store, bearer: Mint) -> None:
    run = await claimed(pods, store, bearer)
    for first in range(1, 500, 10):
        assert await emit(pods, run, bearer(run), first, 10, 3000) == first + 9
    page = await store.events.read(run, 0, 1000)
    assert sum(len(str(event.data)) for event in page.events) < 21_000
    assert "limit" in page.events[-1].data["message"]


@pytest.mark.parametrize("limits", [FEW_EVENTS], ids=["count"])
async def test_a_full_log_stays_full_when_another_process_opens_it(
    pods: Pods, store: Store, bearer: Mint, tmp_path: Path
) -> None:
    run = await claimed(pods, store, bearer)
    await emit(pods, run, bearer(run), 1, 30)
    before = await stored_messages(store, run)
    await store.event_logs._logs._journals.evict(run)  # type: ignore[attr-defined]
    # Numbers 31 to 39 were acknowledged by the other process only.
    assert await emit(pods, run, bearer(run), 40, 5) == 44
    assert await stored_messages(store, run) == before


@pytest.mark.parametrize("limits", [FEW_EVENTS], ids=["count"])
async def test_a_run_with_a_full_log_ends(pods: Pods, store: Store, bearer: Mint, objects: Any) -> None:
    objects.accepts_writes = True
    run = await claimed(pods, store, bearer)
    assert await emit(pods, run, bearer(run), 1, 100) == 100
    result = {
        **HOLDER,
        "outcome": "succeeded",
        "duration_ms": 5,
        "last_event": 100,
        "artifacts": {"count": 0, "bytes": 0},
    }
    assert await call_api(pods, run, "result", result, bearer(run)) == (200, {})


@pytest.mark.parametrize("limits", [SMALL_PROJECT], ids=["project"])
async def test_project_at_its_limit_stores_nothing_while_another_does(
    pods: Pods, store: Store, bearer: Mint
) -> None:
    run = await claimed(pods, store, bearer)
    assert (await put_artifact(pods, run, "a", b"x" * 1500, bearer(run)))[0] == 200
    status, body = await put_artifact(pods, run, "b", b"x" * 1500, bearer(run))
    # Permanent: the runner names the file in the log and goes on.
    assert status == 422 and "the project demo has" in body["error"]
    assert (await put_artifact(pods, run, "c", b"x" * 300, bearer(run)))[0] == 200
    assert await emit(pods, run, bearer(run), 1, 1, 400) == 1
    assert await emit(pods, run, bearer(run), 2, 50, 400) == 51
    assert "the project demo has" in (await stored_messages(store, run))[-1]
    other = await other_run(pods, store, bearer)
    assert (await put_artifact(pods, other, "b", b"x" * 1500, bearer(other)))[0] == 200
    assert await emit(pods, other, bearer(other), 1, 1, 100) == 1
    assert (await stored_messages(store, other))[-1] == "step"


async def test_bytes_without_a_limit_are_not_measured(
    pods: Pods, store: Store, bearer: Mint, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = await claimed(pods, store, bearer)
    store.volume = Volume(None)
    monkeypatch.setattr(store.project_storage, "of", None)
    assert (await put_artifact(pods, run, "a", b"x", bearer(run)))[0] == 200
    assert await emit(pods, run, bearer(run), 1, 1) == 1


@pytest.mark.parametrize("limits", [SMALL_PROJECT], ids=["project"])
async def test_a_replaced_file_counts_once_for_its_project(pods: Pods, store: Store, bearer: Mint) -> None:
    run = await claimed(pods, store, bearer)
    for content in (b"a" * 1500, b"b" * 1500, b"b" * 1500, b"c" * 1600, b"d" * 500):
        status, body = await put_artifact(pods, run, "a", content, bearer(run))
        assert status == 200, body
        assert (await store.project_storage.of("demo"))[1].artifacts == len(content)
    assert (await put_artifact(pods, run, "b", b"x" * 1000, bearer(run)))[0] == 200
    assert (await put_artifact(pods, run, "a", b"e" * 1500, bearer(run)))[0] == 422


@pytest.mark.parametrize("limits", [SMALL_PROJECT], ids=["project"])
async def test_parallel_versions_of_a_file_count_once(
    pods: Pods, store: Store, bearer: Mint, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = await claimed(pods, store, bearer)
    await store.project_storage.of("demo")
    put, both_arrived, received = store.blobs.put, asyncio.Event(), []

    async def put_together(key: str, chunks: Any, size: int, sha256: str | None) -> Any:
        stored = await put(key, chunks, size, sha256)
        received.append(key)
        if len(received) == 2:
            both_arrived.set()
        await asyncio.wait_for(both_arrived.wait(), 30)
        return stored

    monkeypatch.setattr(store.blobs, "put", put_together)
    sent = [put_artifact(pods, run, "a", content * 700, bearer(run)) for content in (b"a", b"b")]
    assert [status for status, _ in await asyncio.gather(*sent)] == [200, 200]
    assert (await store.project_storage.of("demo"))[1].artifacts == 700


@pytest.mark.parametrize("limits", [InstallationLimits(artifact_bytes=1000)], ids=["parallel"])
async def test_parallel_files_are_counted_before_they_are_stored(
    pods: Pods, store: Store, bearer: Mint
) -> None:
    run = await claimed(pods, store, bearer)
    received: list[int] = []
    put = store.blobs.put

    async def counting(key: str, chunks: Any, size: int, sha256: str | None) -> Any:
        received.append(size)
        await asyncio.sleep(0.2)
        return await put(key, chunks, size, sha256)

    store.blobs.put = counting  # type: ignore[method-assign]
    sent = [put_artifact(pods, run, f"f{number}", bytes([number]) * 400, bearer(run)) for number in range(6)]
    statuses = sorted([status for status, _ in await asyncio.gather(*sent)])
    assert sum(received) <= 1000 and statuses.count(422) >= 4


@pytest.mark.parametrize(
    ("stored", "arriving", "allowed"), [(500, 500, True), (501, 501, False), (900, 1, False), (1, 900, False)]
)
async def test_an_arriving_file_that_is_stored_already_counts_once(
    store: Store, kube: KubeClient, tmp_path: Path, stored: int, arriving: int, allowed: bool
) -> None:
    limits = InstallationLimits(artifact_bytes=1000)
    config = ApiConfig("crews", "http://p", "http://i", "k" * 16, tmp_path, limits=limits)
    context = InternalContext(config, store, kube)
    await builders.add_demo_project(store)
    run = await builders.create_run(store)
    await store.artifacts.put(run, "a", stored, "0" * 64, "text/plain", False, "blob", builders.NOW)
    checked = contextlib.nullcontext() if allowed else pytest.raises(PodApiError, match="1000 bytes")
    receiving = artifacts._receiving
    with receiving(context, run, "a", arriving), receiving(context, run, "b", 500), checked:
        await artifacts._check_limits(context, run, "b")


async def test_too_many_files_at_a_time_wait(store: Store, kube: KubeClient, tmp_path: Path) -> None:
    context = InternalContext(ApiConfig("crews", "http://p", "http://i", "k" * 16, tmp_path), store, kube)
    with contextlib.ExitStack() as open_files:
        for number in range(artifacts.MAX_PARALLEL_FILES):
            open_files.enter_context(artifacts._receiving(context, "run-a", f"f{number}", 1))
        with pytest.raises(PodApiError) as refused, artifacts._receiving(context, "run-a", "more", 1):
            pass
        assert refused.value.status == 503
        with artifacts._receiving(context, "run-b", "a", 1):
            pass
    assert context.arriving_files == {}


async def test_below_the_floor_only_ends_are_stored(
    pods: Pods, store: Store, bearer: Mint, objects: Any, tmp_path: Path
) -> None:
    objects.accepts_writes = True
    run = await claimed(pods, store, bearer)
    await emit(pods, run, bearer(run), 1, 2)
    free = [1000]
    store.volume = Volume(tmp_path, 1000, free_bytes=lambda _: free[0])
    event = {"seq": 3, "type": "step", "time": "2026-11-21T10:00:00Z", "data": {}}
    assert (await call_api(pods, run, "events", {**HOLDER, "events": [event]}, bearer(run)))[0] == 503
    assert (await put_artifact(pods, run, "a", b"x", bearer(run)))[0] == 503
    result = {
        **HOLDER,
        "outcome": "succeeded",
        "duration_ms": 5,
        "last_event": 3,
        "artifacts": {"count": 0, "bytes": 0},
    }
    assert await call_api(pods, run, "result", result, bearer(run)) == (200, {})


def test_the_floor_and_the_shares_follow_the_volume(tmp_path: Path) -> None:
    clock, free = [0.0], [10_000]
    volume = Volume(tmp_path, 500, lambda: clock[0], lambda _: free[0])
    assert volume.has_room()
    free[0] = 500
    assert volume.has_room(), "as of the last second"
    clock[0] = 1.0
    assert not volume.has_room()
    assert volume.share(7) == 7 and volume.share(0) == volume.total // 2
    assert 0 < Volume(tmp_path).floor <= 512 << 20
    nowhere = Volume(None)
    assert nowhere.has_room() and nowhere.share(0) is None and nowhere.share(7) == 7


async def test_the_sums_of_a_project(store: Store) -> None:
    await builders.add_demo_project(store)
    run = await builders.create_run(store)
    now = datetime.now(UTC)
    await store.artifacts.put(run, "a", 100, "0" * 64, "text/plain", False, "blob", now)
    upload = await store.uploads.create("demo", 30, None, now, now)
    await store.uploads.mark_stored(upload.id, "0" * 64, "blob", now)
    storage = store.project_storage
    assert await storage.project_of(run) == "demo" and await storage.project_of("run-none") is None
    plan, stored = await storage.of("demo")
    assert (plan, stored.artifacts, stored.uploads, stored.events, stored.total) == ("free", 100, 30, 0, 130)
    storage.add("demo", artifact_bytes=5, upload_bytes=7)
    storage.record_log("demo", run, 11)
    assert (await storage.of("demo"))[1].total == 130 + 5 + 7 + 11
    assert (await storage.of("other"))[1].total == 0
