"""Store outages (full, locked, stopped, silent, refused): 503 in time, no acknowledged data lost."""

import asyncio
import contextlib
import hashlib
import os
import signal
import sqlite3
import subprocess
import time
from datetime import UTC, datetime
from pathlib import Path

import aiohttp
import pytest

from api.store.backend import INDEX
from crds import pod_tokens
from crds.kinds import RUN
from crds.names import name_of
from crds.times import format_second
from tests.cluster.api_http.replica import TOKEN_KEY, Replica, generate_admin_key
from tests.cluster.api_http.test_replicas import ReplicaEventReader, create_run, until
from tests.unit.api.store import bucket as s3
from tests.unit.api.store import postgres_server as pg

RESPONSE_DEADLINE_SECONDS = 15.0
"""Every call gets a response within these seconds: three times the promise, for a loaded node."""

INITIAL_RUNS = 5
"""Runs that `create_run` creates."""


class Checker:
    """Makes every kind of call and records what the API acknowledged."""

    def __init__(self, replica, kube, run, uid):
        self.replica, self.kube, self.run, self.uid = replica, kube, run, uid
        self.number = 0
        self.events = 0
        self.files, self.runs, self.uploads = {}, [], []
        self.problems = []
        self.first = None

    async def call_all(self):
        """Make one call of each kind in parallel; return the statuses by kind."""
        self.number += 1
        calls = (
            self._list,
            self._page,
            self._create_run,
            self._append_event,
            self._put_artifact,
            self._read,
            self._upload,
        )
        content = await asyncio.gather(*(self._timed(call) for call in calls))
        return dict(content)

    async def _timed(self, call):
        started = time.monotonic()
        status = await call()
        elapsed = time.monotonic() - started
        if not (200 <= status < 300 or status == 503) or elapsed > RESPONSE_DEADLINE_SECONDS:
            self.problems.append(f"{call.__name__} {self.number}: {status} after {elapsed:.1f} s")
        return call.__name__, status

    async def _list(self):
        return (await self.replica.call("GET", "/v1/runs?project=crew"))[0]

    async def _page(self):
        path = f"/v1/runs/{self.run}/events"
        return (await self.replica.call("GET", path, Accept="application/json"))[0]

    async def _create_run(self):
        body = {"deployment": "crew", "input": {"number": self.number}}
        status, content, _ = await self.replica.call("POST", "/v1/runs", body)
        if status == 201:
            self.runs.append(content["data"]["id"])
        return status

    async def _upload(self):
        body = {"project": "crew", "size": 3}
        status, content, _ = await self.replica.call("POST", "/v1/uploads", body)
        if status == 201:
            self.uploads.append(content["data"]["id"])
        return status

    async def _append_event(self):
        seq = self.events + 1
        event = {"seq": seq, "type": "log", "time": None, "data": {"message": f"line {seq} " + "x" * 20_000}}
        response = await self.replica.call_as_pod(name_of(self.run), self.uid, "events", {"events": [event]})
        if response is None:
            return 503
        self.events = response["acknowledged"]
        return 200

    async def _put_artifact(self):
        name, data = f"file-{self.number}", os.urandom(50_000)
        run = name_of(self.run)
        token = pod_tokens.mint(
            TOKEN_KEY, "run", self.replica.namespace, run, self.uid, int(time.time()) + 600
        )
        sha256 = hashlib.sha256(data).hexdigest()
        headers = {
            "Authorization": f"Bearer {token}",
            "X-Crewyard-Sha256": sha256,
            "X-Crewyard-Pod": "pod",
            "X-Crewyard-Nonce": "nonce-of-the-pod",
        }
        async with (
            aiohttp.ClientSession(self.replica.url) as session,
            session.put(f"/internal/v1/runs/{run}/artifacts/{name}", data=data, headers=headers) as response,
        ):
            if response.status == 200:
                self.files[name] = sha256
                self.first = self.first or name
            return response.status

    async def _read(self):
        if self.first is None:
            return 200
        return (await self._file(self.first))[0]

    async def _file(self, name):
        headers = {"Authorization": f"Bearer {self.replica.admin_key.text}"}
        async with (
            aiohttp.ClientSession(self.replica.url) as session,
            session.get(f"/v1/runs/{self.run}/artifacts/{name}", headers=headers) as response,
        ):
            return response.status, hashlib.sha256(await response.read()).hexdigest()

    async def all_succeed(self):
        """Return whether every call succeeds."""
        return all(200 <= status < 300 for status in (await self.call_all()).values())

    async def assert_outage(self, fault, *kinds):
        """Assert that these calls fail during the fault and all calls succeed after it without a restart."""
        async with fault:
            for _ in range(2):
                statuses = await self.call_all()
                assert {kind for kind in kinds if statuses[kind] != 503} == set(), statuses
        await until(self.all_succeed)
        assert self.problems == []

    async def assert_stored(self):
        """Assert that everything acknowledged is stored."""
        for run in self.runs:
            assert (await self.replica.call_until_available("GET", f"/v1/runs/{run}"))[0] == 200
            assert await self.kube.get(RUN, name_of(run)) is not None
        for name, sha256 in self.files.items():
            assert await self._file(name) == (200, sha256)
        # No refused request takes effect later: its caller got a 503 and retries.
        await until(self._has_only_acknowledged_runs, 120)

    async def _has_only_acknowledged_runs(self):
        _, content = await self.replica.call_until_available("GET", "/v1/runs?project=crew")
        return content["pagination"]["total"] == len(self.runs) + INITIAL_RUNS


async def start_checker(replica, kube):
    """Start the replica and return a checker with a claimed run."""
    await replica.start()
    run, uid = await create_run(kube, replica, replica)
    claim = {"protocol": 1, "run_uid": uid}
    response = await until(lambda: replica.call_as_pod(name_of(run), uid, "claim", claim))
    assert response["state"] == "granted"
    checker = Checker(replica, kube, run, uid)
    await until(checker.all_succeed)
    return checker


async def end_run(checker):
    """End the run."""
    when = format_second(datetime.now(UTC))
    status = {"phase": "Succeeded", "startTime": when, "completionTime": when}
    await checker.kube.patch(RUN, name_of(checker.run), {"status": status}, "status")


async def follow_to_end(checker, reader):
    """Follow events to the terminal one and resume interrupted streams."""
    while not reader.events or reader.events[-1][1] != "run.completed":
        await reader.follow(checker.replica)
        await asyncio.sleep(0.2)


async def assert_complete(checker, reading, reader):
    await checker.assert_stored()
    await end_run(checker)
    await asyncio.wait_for(reading, 120)
    assert [number for number, _, _ in reader.events] == list(range(1, len(reader.events) + 1))
    lines = [text.split()[1] for _, kind, text in reader.events if kind == "log"]
    assert lines == [str(number) for number in range(1, checker.events + 1)]
    assert [kind for _, kind, _ in reader.events].count("artifact") == len(checker.files)


@pytest.fixture
def small_filesystem(tmp_path):
    """Mount a file system of 16 MiB."""
    directory = tmp_path / "small_filesystem"
    directory.mkdir()
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16m", "none", directory], capture_output=True)
    if done.returncode:
        pytest.skip("only root can mount a file system")
    yield directory
    subprocess.run(["umount", "-l", directory], check=True)


@contextlib.asynccontextmanager
async def disk_full(directory: Path):
    """Fill the file system completely."""
    filler = directory / "filler"
    with filler.open("wb", buffering=0) as file, contextlib.suppress(OSError):
        for size in (65536, 4096, 1):
            with contextlib.suppress(OSError):
                while True:
                    file.write(bytes(size))
    yield
    filler.unlink()


@contextlib.asynccontextmanager
async def index_locked(index: Path):
    """Hold a write transaction on the index from another connection."""
    other = sqlite3.connect(index, timeout=60, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    yield
    other.execute("ROLLBACK")
    other.close()


async def test_full_or_locked_data_directory(small_filesystem, kube):
    """Slow: waits for timeouts of a full file system and a locked database."""
    replica = Replica(kube.namespace, small_filesystem / "data", {}, generate_admin_key(), module="api")
    try:
        checker = await start_checker(replica, kube)
        reader = ReplicaEventReader(checker.run)
        reading = asyncio.create_task(follow_to_end(checker, reader))
        await checker.assert_outage(disk_full(small_filesystem), "_append_event", "_put_artifact")
        await checker.assert_outage(
            index_locked(small_filesystem / "data" / INDEX), "_create_run", "_upload", "_put_artifact"
        )
        await assert_complete(checker, reading, reader)
    finally:
        await replica.stop(signal.SIGKILL)


@contextlib.asynccontextmanager
async def stopped(server):
    """Stop the server, and start it again at the end."""
    await asyncio.to_thread(server.stop)
    yield
    await asyncio.to_thread(server.start)


@contextlib.asynccontextmanager
async def paused(server: s3.S3Server):
    """Pause the object store: connections stay open without a response."""
    server.signal(signal.SIGSTOP)
    yield
    server.signal(signal.SIGCONT)


@contextlib.asynccontextmanager
async def credentials_refused(server: s3.S3Server):
    """Make the object store refuse the credentials."""
    await asyncio.to_thread(server.stop)
    await asyncio.to_thread(server.start, "another-secret")
    yield
    await asyncio.to_thread(server.stop)
    await asyncio.to_thread(server.start)


async def test_database_or_bucket_outage(tmp_path, kube):
    """Slow: stops and starts a database and an object store."""
    program = s3.program()
    if program is None or not (pg.PROGRAMS / "postgres").exists():
        pytest.skip(f"{s3.MISSING}; {pg.MISSING}")
    database, bucket = await asyncio.gather(
        asyncio.to_thread(pg.PostgresServer), asyncio.to_thread(s3.S3Server, program)
    )
    settings = {
        **bucket.environment,
        "CREWYARD_DATABASE_URL": database.database(),
        "CREWYARD_BLOBS_URL": f"s3://{bucket.new().name}",
    }
    replica = Replica(kube.namespace, tmp_path / "data", settings, generate_admin_key(), module="api")
    index = ("_list", "_page", "_create_run", "_append_event", "_put_artifact", "_upload")
    try:
        checker = await start_checker(replica, kube)
        reader = ReplicaEventReader(checker.run)
        reading = asyncio.create_task(follow_to_end(checker, reader))
        await checker.assert_outage(pg.halted(database), *index)
        await checker.assert_outage(stopped(database), *index)
        for fault in (stopped, paused, credentials_refused):
            await checker.assert_outage(fault(bucket), "_put_artifact", "_read")
        await assert_complete(checker, reading, reader)
    finally:
        await replica.stop(signal.SIGKILL)
        database.close()
        bucket.close()
