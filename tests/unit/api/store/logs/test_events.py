"""Tests of events: replays from every position, idempotent appends, the terminal event."""

import asyncio
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from api.store.errors import Missing
from api.store.logs.event_log import EventLog, NewEvent
from api.store.logs.events import EventBounds, RunEvent, records_before, replay
from api.store.logs.journal import record
from api.store.logs.stored_event import StoredEvent
from api.store.store import Store
from tests.unit.api.store import builders

STARTED = RunEvent(1, StoredEvent("run.started", {}))


@given(
    record_count=st.integers(0, 30),
    claimed=st.booleans(),
    ended=st.booleans(),
    after=st.integers(0, 40),
    limit=st.integers(1, 40),
)
def test_replay_pages(record_count: int, claimed: bool, ended: bool, after: int, limit: int) -> None:
    record_count = record_count if claimed else 0
    terminal = RunEvent(record_count + 2 if claimed else 1, StoredEvent("run.completed", {}))
    head = EventBounds(STARTED if claimed else None, terminal if ended else None)
    logged = [StoredEvent("log", {"n": number}) for number in range(1, record_count + 1)]
    part = logged[records_before(after) :][:limit]
    events = replay(head, part, after, limit)
    whole = ([STARTED] if claimed else []) + [RunEvent(event.data["n"] + 1, event) for event in logged]
    whole += [terminal] if ended else []
    assert events == whole[after : after + limit]


@settings(max_examples=30, deadline=None)
@given(calls=st.lists(st.tuples(st.integers(1, 25), st.integers(0, 8)), max_size=12))
def test_repeated_appends_are_idempotent(
    tmp_path_factory: pytest.TempPathFactory, calls: list[tuple[int, int]]
) -> None:
    directory = tmp_path_factory.mktemp("log") / "run"
    log, stored = EventLog(directory), 0
    for first, count in calls:
        if first <= stored + 1:
            stored = max(stored, first + count - 1)
        assert log.append([NewEvent(first + n, "log", {"n": first + n}) for n in range(count)]) == stored
        log = EventLog(directory)
    assert [record(line)["d"]["n"] for line in log.lines(0, 1000)] == list(range(1, stored + 1))


def test_artifact_marker_in_event_data(tmp_path: Path) -> None:
    log = EventLog(tmp_path / "log")
    log.append_artifact(3, {"name": "a"})
    log.append([NewEvent(1, "log", {"message": '{"v":98,'}), NewEvent(2, "step", {"v": 99, "a": {"v": 99}})])
    again = EventLog(tmp_path / "log")
    assert (again.seq, again.version, again.last) == (2, 3, 3)


def test_artifact_event_is_idempotent(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    directory = tmp_path_factory.mktemp("log") / "run"
    EventLog(directory).append_artifact(1, {"name": "a"})
    log = EventLog(directory)
    log.append([NewEvent(1, "log", {})])
    log = EventLog(directory)
    log.append_artifact(1, {"name": "a"})
    log.append_artifact(2, {"name": "a"})
    records = [record(line) for line in log.lines(0, 9)]
    assert [(each["t"], each.get("v")) for each in records] == [
        ("artifact", 1),
        ("log", None),
        ("artifact", 2),
    ]


async def test_parallel_artifacts_after_crash(tmp_path: Path, database_url: str | None) -> None:
    store = await Store.open(tmp_path, "crews", database_url)
    await builders.add_demo_project(store)
    run = await builders.claim_run(store)

    async def put(name: str, recorded: bool = True) -> int:
        async with store.events.open_writer(run) as log:
            row = await store.artifacts.put(run, name, 1, name, "a/b", False, name, builders.NOW)
            if recorded:
                await log.append_artifact(row.version, {"name": name})
            return row.version

    assert [await put("a"), await put("b", recorded=False)] == [1, 2]
    # The process died in between; b is sent last, after the repeated and the new files.
    await store.close()
    store = await Store.open(tmp_path, "crews", database_url)
    assert [await put("c"), await put("a")] == [3, 1]
    await append_events(store, run, 1)
    assert [await put("b"), await put("b"), await put("d")] == [2, 2, 4]
    await store.close()
    store = await Store.open(tmp_path, "crews", database_url)
    assert [await put(name) for name in "abcd"] == [1, 2, 3, 4]
    events = (await store.events.read(run, 0, 20)).events
    assert [event.data["name"] for event in events if event.type == "artifact"] == ["a", "c", "b", "d"]
    await store.close()


async def append_events(store: Store, run: str, *numbers: int) -> None:
    async with store.events.open_writer(run) as log:
        await log.append([NewEvent(number, "log", {"message": str(number)}) for number in numbers])
    store.events.notify_appended(run)


async def test_stream_of_a_run(store: Store) -> None:
    await builders.add_demo_project(store)
    run = await builders.claim_run(store)
    assert [event.type for event in (await store.events.read(run, 0, 10)).events] == ["run.started"]
    await append_events(store, run, 1, 2)
    ended = {"completionTime": "2026-11-21T10:00:03Z", "durationMs": 7, "result": {"output": "[1]"}}
    await store.run_writer.observe(builders.run(run, "Succeeded", **ended), builders.NOW)
    page = await store.events.read(run, 0, 10)
    assert [(event.id, event.type) for event in page.events] == [
        (1, "run.started"),
        (2, "log"),
        (3, "log"),
        (4, "run.completed"),
    ]
    identifier = run.replace("-", "_", 1)
    assert page.events[0].data == {
        "run_id": identifier,
        "timestamp": "2026-11-21T10:00:01.123456Z",
        "deployment_id": "dep_a",
    }
    assert page.events[3].data == {
        "run_id": identifier,
        "timestamp": "2026-11-21T10:00:03Z",
        "duration_ms": 7,
        "output": [1],
    }
    assert (page.ended, page.total) == (True, 4)
    assert (await store.events.read(run, 4, 10)).ended
    assert not (await store.events.read(run, 0, 3)).ended


async def test_unclaimed_run_has_terminal_event_only(store: Store) -> None:
    await builders.add_demo_project(store)
    run = await builders.create_run(store)
    assert (await store.events.read(run, 0, 10)).events == ()
    error = {"reason": "NoActiveDeployment", "message": "deploy first"}
    await store.run_writer.observe(builders.run(run, "Failed", error=error), builders.NOW)
    page = await store.events.read(run, 0, 10)
    assert [(event.id, event.type, event.data["error"]) for event in page.events] == [
        (1, "run.failed", error)
    ]
    assert page.ended


async def test_unknown_run(store: Store) -> None:
    with pytest.raises(Missing):
        await store.events.read("run-nowhere", 0, 1)


async def test_waiting_reader_is_woken(store: Store) -> None:
    await builders.add_demo_project(store)
    run = await builders.create_run(store)
    seen: list[str] = []

    async def follow() -> None:
        after = 0
        while True:
            page = await store.events.read(run, after, 2)
            seen.extend(event.type for event in page.events)
            after = page.events[-1].id if page.events else after
            if page.ended:
                return
            if not page.events:
                await store.events.wait(run, page.mark, 30)

    from api.store.index.claims.claims import ClaimRequest

    reader = asyncio.create_task(follow())
    await asyncio.sleep(0.02)
    await store.claims.grant(run, ClaimRequest("run-uid", "pod", "nonce"), {}, builders.NOW)
    store.events.notify_state_changed(run)
    for number in range(1, 6):
        await append_events(store, run, number)
        await asyncio.sleep(0)
    await store.run_writer.observe(builders.run(run, "Canceled"), builders.NOW)
    await asyncio.wait_for(reader, 20)
    assert seen == ["run.started", *["log"] * 5, "run.canceled"]


async def test_no_event_after_the_terminal_one(store: Store) -> None:
    await builders.add_demo_project(store)
    for _ in range(5):
        run = await builders.claim_run(store)

        has_said = asyncio.Event()

        async def talk(run: str = run, has_said: asyncio.Event = has_said) -> int:
            stored = 0
            while True:
                async with store.events.open_writer(run) as log:
                    if not await store.claims.holds(run, "pod", "nonce"):
                        return stored
                    stored = await log.append([NewEvent(stored + 1, "log", {})])
                if stored == 3:
                    has_said.set()

        talking = asyncio.create_task(talk())
        await asyncio.wait_for(has_said.wait(), 60)
        await store.run_writer.observe(builders.run(run, "Failed"), builders.NOW)
        stored = await talking
        assert stored >= 3
        page = await store.events.read(run, 0, 100_000)
        assert [event.id for event in page.events] == list(range(1, stored + 3))
        assert page.events[-1].type == "run.failed"
