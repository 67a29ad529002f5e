"""Tests of backups during service, and of their restoration."""

import asyncio
import os
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from api.maintenance.backup import BackupFailed, backup, main
from api.maintenance.backup_target import open_target
from api.maintenance.maintenance_round import MaintenanceRound
from api.maintenance.retention import RetentionPolicy
from api.store.accounting import account_batch
from api.store.logs.build_logs import Chunk
from api.store.logs.event_log import NewEvent
from api.store.store import Store
from tests.unit.api.store import builders
from tests.unit.api.store.postgres_server import PASSWORD, PROGRAMS, PostgresServer

ROOT = Path(__file__).parents[4]


async def bytes_of(text: str):
    yield text.encode()


async def work(store: Store, events: int = 30) -> str:
    """Create a run with events, a replaced artifact, and its end."""
    run = await builders.claim_run(store)
    for version in ("one", "two"):
        async with store.events.open_writer(run) as log:
            seq = log.seq
            await log.append(
                [NewEvent(seq + n, "log", {"message": "x" * 200}) for n in range(1, events // 2 + 1)]
            )
            before = await store.artifacts.get(run, "a")
            blob = f"crews/runs/{run}/{version}"
            await store.blobs.put(blob, bytes_of(version), 3, None)
            row = await store.artifacts.put(run, "a", 3, version, "text/plain", False, blob, builders.NOW)
            await log.append_artifact(row.version, {"name": "a"})
        if before:
            await store.blobs.delete(before.blob)
    ended = {"completionTime": "2026-11-21T10:00:03Z"}
    await store.run_writer.observe(builders.run(run, "Succeeded", **ended), builders.NOW)
    return run


async def check(directory: Path, at_least: set[str]) -> None:
    """Check that everything in the restored index exists."""
    store = await Store.open(directory, "crews")
    page = await store.runs.page(0, 1000)
    assert {row.name for row in page.items} >= at_least
    for row in page.items:
        events = await store.events.read(row.name, 0, 1000)
        assert [event.id for event in events.events] == list(range(1, events.total + 1))
        assert events.ended == row.ended
        if row.ended:
            assert events.total == 34
            (artifact,) = (await store.artifacts.page(row.name, 0, 9)).items
            assert [part async for part in store.blobs.read(artifact.blob)] == [b"two"]
    assert (await store.build_logs.read("dep-a")).text == "text\n"
    await store.close()


@pytest.mark.parametrize("kind", ["folder", "store.tar"])
async def test_backup_during_writes_and_sealing(tmp_path: Path, kind: str) -> None:
    data, to = tmp_path / "data", tmp_path / kind
    store = await Store.open(data, "crews")
    await builders.add_demo_project(store)
    await store.build_logs.append("dep-a", "pod", "assemble", [Chunk(1, "text\n")])
    first = {await work(store) for _ in range(5)}
    stop = asyncio.Event()

    async def go_on() -> None:
        while not stop.is_set():
            await work(store)

    async def keep() -> None:
        while not stop.is_set():
            await account_batch(store)
            await MaintenanceRound(store, RetentionPolicy(10**9), 1).run_once(builders.later(9))
            await asyncio.sleep(0)

    tasks = [asyncio.create_task(go_on()), asyncio.create_task(keep())]
    await asyncio.sleep(0.2)
    await asyncio.to_thread(lambda: backup(data, open_target(str(to))))
    stop.set()
    await asyncio.gather(*tasks)
    await store.close()
    restored = to
    if to.suffix == ".tar":
        restored = tmp_path / "restored"
        with tarfile.open(to) as archive:
            archive.extractall(restored, filter="data")
    await check(restored, first)


async def test_command_during_service(tmp_path: Path) -> None:
    store = await Store.open(tmp_path / "data", "crews")
    await builders.add_demo_project(store)
    await store.build_logs.append("dep-a", "pod", "assemble", [Chunk(1, "text\n")])
    run = await work(store)
    environ = {
        "PATH": os.environ["PATH"],
        "CREWYARD_DATA": str(tmp_path / "data"),
        "CREWYARD_TOKEN_KEY": "k" * 32,
    }
    # Of a backup that was killed.
    (tmp_path / "data" / "backup-left").mkdir()
    made = await asyncio.to_thread(
        lambda: subprocess.run(
            [sys.executable, "-m", "api", "backup", "-"],
            cwd=ROOT,
            env=environ,
            capture_output=True,
            timeout=240,
        )
    )
    assert made.returncode == 0, made.stderr
    assert b"files of" in made.stderr
    (tmp_path / "made.tar").write_bytes(made.stdout)
    with tarfile.open(tmp_path / "made.tar") as archive:
        archive.extractall(tmp_path / "restored", filter="data")
    assert not list((tmp_path / "data").glob("*backup-*"))
    await store.close()
    await check(tmp_path / "restored", {run})


async def test_missing_blob_fails_the_backup(tmp_path: Path) -> None:
    store = await Store.open(tmp_path / "data", "crews")
    await builders.add_demo_project(store)
    run = await work(store)
    await store.close()
    with pytest.raises(FileExistsError):
        open_target(str(tmp_path))
    log = next((tmp_path / "data" / "events").rglob("*.log"))
    whole = log.read_bytes()
    log.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(BackupFailed, match=f"the log of {run} is missing"):
        backup(tmp_path / "data", open_target(str(tmp_path / "one")))
    assert not (tmp_path / "one" / "index.sqlite3").exists()
    log.write_bytes(whole)
    (tmp_path / "data" / "blobs" / "crews" / "runs" / run / "two").unlink()
    with pytest.raises(BackupFailed, match="the blob crews/runs/"):
        backup(tmp_path / "data", open_target(str(tmp_path / "two")))
    backup(tmp_path / "data", open_target(str(tmp_path / "three")), blobs=False)


def test_unsupported_settings(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for arguments, url, code, words in (
        ([], None, 2, "usage"),
        ([str(tmp_path / "to")], "postgresql://x/y", 2, "pg_dump"),
        ([str(tmp_path / "to")], None, 1, "CREWYARD_DATA"),
    ):
        assert main(tmp_path / "nowhere", url, None, arguments) == code
        assert words in capsys.readouterr().err


async def test_postgres_dump_and_restore(tmp_path: Path, postgres: PostgresServer) -> None:
    def run_program(program: str, *arguments: str) -> None:
        environ = {"PGPASSWORD": PASSWORD, "PGHOST": str(postgres.directory), "PGUSER": "crewyard"}
        argv = [str(PROGRAMS / program), *arguments]
        subprocess.run(argv, env=environ, check=True, capture_output=True, timeout=240)

    url, empty = postgres.database("filled"), postgres.database()
    names = [one.split("@/")[1].split("?")[0] for one in (url, empty)]
    store = await Store.open(tmp_path, "crews", url)
    await builders.add_demo_project(store)
    run = await work(store)
    dump = str(tmp_path / "dump")
    await asyncio.to_thread(run_program, "pg_dump", "--format=custom", f"--file={dump}", names[0])
    await asyncio.to_thread(run_program, "pg_restore", "--no-owner", f"--dbname={names[1]}", dump)
    await store.close()
    restored = await Store.open(tmp_path, "crews", empty)
    assert (await restored.events.read(run, 0, 99)).total == 34
    other = await work(restored)
    assert {row.name for row in (await restored.runs.page(0, 9)).items} == {run, other}
    await restored.close()
