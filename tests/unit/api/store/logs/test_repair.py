"""Tests of log repair: readable records of a damaged log are kept, and its run ends."""

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from api.store.backend import INDEX
from api.store.logs.build_logs import Chunk, FileBuildLogs
from api.store.logs.event_log import EventLog, NewEvent
from api.store.logs.journal import Journal, JournalDamaged, Record, encode_record, record
from api.store.logs.repair import LOST, repair_files
from api.store.sql.notifier import Notifier
from api.store.store import Store
from tests.unit.api.store import builders


def new_event(number: int) -> NewEvent:
    return NewEvent(number, "log", {"timestamp": f"2026-11-21T10:00:{number:02}Z", "message": "x" * 30})


def read(log: EventLog) -> list[Record]:
    """Return the records of a log with fewer than 100. Raises JournalDamaged."""
    return [record(line) for line in log.lines(0, 100)]


def segments(directory: Path) -> list[Path]:
    return sorted(directory.glob("*.log"))


@settings(max_examples=60, deadline=None)
@given(
    data=st.data(),
    size=st.sampled_from([300, 900, 10**6]),
    junk=st.sampled_from([b"\0", b"\n", b"\xff"]),
)
def test_readable_records_keep_their_numbers(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject, size: int, junk: bytes
) -> None:
    directory = tmp_path_factory.mktemp("log") / "run-a"
    journal = Journal(directory, size)
    for number in range(1, 21):
        journal.append([new_event(number).line])
    file = data.draw(st.sampled_from(segments(directory)))
    whole = file.read_bytes()
    start = data.draw(st.integers(0, len(whole) - 1))
    end = min(len(whole), start + data.draw(st.integers(1, 250)))
    file.write_bytes(whole[:start] + junk * (end - start) + whole[end:])
    log = EventLog(directory)
    if log.last:
        with pytest.MonkeyPatch.context():
            try:
                records = read(log)
            except JournalDamaged:
                repair_files(directory)
                log = EventLog(directory)
                records = read(log)
    else:
        records = []
    numbers = [record["s"] for record in records]
    # Only records at the very end of the log can be lost without a trace.
    assert numbers == list(range(1, len(numbers) + 1))
    kept = [record for record in records if record["d"]["message"] != LOST]
    assert all(record["d"] == new_event(record["s"]).data for record in kept)
    lines = (end - start) // 40 + 2
    assert len(kept) >= 20 - lines
    assert repair_files(directory) == 0


def test_lost_artifact_event_leaves_a_gap(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "run-a", segment_bytes=200)
    for number in range(1, 9):
        sort = {"v": number, "t": "artifact"} if number % 2 else {"s": number // 2, "t": "log"}
        journal.append([encode_record({**sort, "d": {"n": number, "text": "x" * 60}})])
    first = segments(tmp_path / "run-a")[0]
    lines = first.read_bytes().splitlines(keepends=True)
    first.write_bytes(b"\0" * (len(lines[0]) - 1) + b"\n" + b"".join(lines[1:]))
    repair_files(tmp_path / "run-a")
    records = read(EventLog(tmp_path / "run-a"))
    assert [record["d"].get("n") for record in records] == [None, *range(2, 9)]
    assert records[0]["d"]["message"] == LOST


@pytest.mark.parametrize("where", ["first", "middle", "artifact"])
async def test_run_with_damaged_log_ends(tmp_path: Path, where: str) -> None:
    store = await Store.open(tmp_path, "crews")
    await builders.add_demo_project(store)
    run = await builders.claim_run(store)
    async with store.events.open_writer(run) as log:
        await log.append([new_event(number) for number in (1, 2, 3)])
        await log.append_artifact(1, {"name": "a", "timestamp": "2026-11-21T10:00:04Z"})
        await log.append([new_event(number) for number in (4, 5)])
    await store.close()
    file = next((tmp_path / "events").rglob("*.log"))
    lines = file.read_bytes().splitlines(keepends=True)
    number = {"first": 0, "middle": 2, "artifact": 3}[where]
    lines[number] = b'{"v":' + lines[number][5:-4] + b"\n"
    file.write_bytes(b"".join(lines))
    store = await Store.open(tmp_path, "crews")
    await store.run_writer.observe(builders.run(run, "Succeeded"), builders.NOW)
    assert (await store.runs.get(run)).status == "succeeded"  # type: ignore[union-attr]
    page = await store.events.read(run, 0, 99)
    assert page.ended and page.events[-1].type == "run.completed"
    assert [event.id for event in page.events] == list(range(1, len(page.events) + 1))
    messages = [event.data.get("message") for event in page.events]
    assert messages.count(LOST) == (0 if where == "artifact" else 1)
    assert messages.count("x" * 30) == (5 if where == "artifact" else 4)
    assert (tmp_path / INDEX).exists()
    await store.close()


async def test_damage_while_open_is_repaired_on_read(tmp_path: Path) -> None:
    store = await Store.open(tmp_path, "crews")
    await builders.add_demo_project(store)
    run = await builders.claim_run(store)
    async with store.events.open_writer(run) as log:
        # In two calls, since the last append is read from memory.
        await log.append([new_event(number) for number in range(1, 4)])
        await log.append([new_event(number) for number in range(4, 6)])
    assert len((await store.events.read(run, 0, 99)).events) == 6
    file = next((tmp_path / "events").rglob("*.log"))
    lines = file.read_bytes().splitlines(keepends=True)
    lines[1] = b"\0" * (len(lines[1]) - 1) + b"\n"
    file.write_bytes(b"".join(lines))
    page = await store.events.read(run, 0, 99)
    assert [event.data.get("message") == LOST for event in page.events] == [False, False, True, *[False] * 3]
    async with store.events.open_writer(run) as log:
        assert await log.append([new_event(6)]) == 6
    assert json.loads(file.read_bytes().splitlines()[1])["s"] == 2
    await store.close()


async def test_damaged_build_log(tmp_path: Path) -> None:
    logs = FileBuildLogs(tmp_path, Notifier())
    chunks = [Chunk(number, f"line {number}\n") for number in range(1, 6)]
    assert await logs.append("dep-a", "pod", "kaniko", chunks) == 5
    file = next(tmp_path.rglob("*.log"))
    lines = file.read_bytes().splitlines(keepends=True)
    for open_already in (True, False):
        file.write_bytes(b"".join([*lines[:2], b"\0" * 50 + b"\n", *lines[3:]]))
        logs = logs if open_already else FileBuildLogs(tmp_path, Notifier())
        text = (await logs.read("dep-a")).text
        assert "line 2\n" in text and "line 4\n" in text and "line 3" not in text
    assert await logs.append("dep-a", "pod", "kaniko", [Chunk(6, "line 6\n")]) == 6
    assert (await logs.read("dep-a")).text.endswith("line 5\nline 6\n")
    await logs.remove("dep-a")
    assert list(tmp_path.rglob("*.log")) == []
