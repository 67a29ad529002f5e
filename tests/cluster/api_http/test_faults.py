"""A store that is full, locked, gone, silent or closed: 503 in time, nothing acknowledged lost."""

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
from tests.cluster.api_http.replica import TOKEN_KEY, Replica, draw
from tests.cluster.api_http.test_replicas import Reader, accepted, until
from tests.unit.api.store import bucket as s3
from tests.unit.api.store import postgres_server as pg

PROMISED = 5.0
"""Seconds in which every call is answered."""

BEFORE = 5
"""Runs that `accepted` makes."""


class Checker:
    """Makes every kind of call, and keeps what was acknowledged."""

    def __init__(self, replica, kube, run, uid):
        self.replica, self.kube, self.run, self.uid = replica, kube, run, uid
        self.number = 0
        self.events = 0
        self.files, self.runs, self.uploads = {}, [], []
        self.trouble = []
        self.first = None

    async def everything(self):
        """One call of each kind, at once; the statuses by kind. Each is in time, and a success or a 503."""
        self.number += 1
        calls = (self._list, self._page, self._accept, self._say, self._store, self._read, self._upload)
        found = await asyncio.gather(*(self._timed(call) for call in calls))
        return dict(found)

    async def _timed(self, call):
        begun = time.monotonic()
        status = await call()
        took = time.monotonic() - begun
        if not (200 <= status < 300 or status == 503) or took > PROMISED:
            self.trouble.append(f"{call.__name__} {self.number}: {status} after {took:.1f} s")
        return call.__name__, status

    async def _list(self):
        return (await self.replica.call("GET", "/v1/runs?project=crew"))[0]

    async def _page(self):
        path = f"/v1/runs/{self.run}/events"
        return (await self.replica.call("GET", path, Accept="application/json"))[0]

    async def _accept(self):
        body = {"deployment": "crew", "input": {"number": self.number}}
        status, found, _ = await self.replica.call("POST", "/v1/runs", body)
        if status == 201:
            self.runs.append(found["data"]["id"])
        return status

    async def _upload(self):
        body = {"project": "crew", "size": 3}
        status, found, _ = await self.replica.call("POST", "/v1/uploads", body)
        if status == 201:
            self.uploads.append(found["data"]["id"])
        return status

    async def _say(self):
        seq = self.events + 1
        event = {"seq": seq, "type": "log", "time": None, "data": {"message": f"line {seq} " + "x" * 20_000}}
        answer = await self.replica.as_pod(name_of(self.run), self.uid, "events", {"events": [event]})
        if answer is None:
            return 503
        self.events = answer["acknowledged"]
        return 200

    async def _store(self):
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
            session.put(f"/internal/v1/runs/{run}/artifacts/{name}", data=data, headers=headers) as answer,
        ):
            if answer.status == 200:
                self.files[name] = sha256
                self.first = self.first or name
            return answer.status

    async def _read(self):
        if self.first is None:
            return 200
        return (await self._file(self.first))[0]

    async def _file(self, name):
        headers = {"Authorization": f"Bearer {self.replica.drawn.text}"}
        async with (
            aiohttp.ClientSession(self.replica.url) as session,
            session.get(f"/v1/runs/{self.run}/artifacts/{name}", headers=headers) as answer,
        ):
            return answer.status, hashlib.sha256(await answer.read()).hexdigest()

    async def good(self):
        """Whether every call succeeds."""
        return all(200 <= status < 300 for status in (await self.everything()).values())

    async def bites(self, fault, *kinds):
        """Within the fault these kinds of calls fail; behind it all succeed, without a restart."""
        async with fault:
            for _ in range(2):
                statuses = await self.everything()
                assert {kind for kind in kinds if statuses[kind] != 503} == set(), statuses
        await until(self.good)
        assert self.trouble == []

    async def all_is_there(self):
        """Every acknowledged thing."""
        for run in self.runs:
            assert (await self.replica.call("GET", f"/v1/runs/{run}"))[0] == 200
            assert await self.kube.get(RUN, name_of(run)) is not None
        for name, sha256 in self.files.items():
            assert await self._file(name) == (200, sha256)
        # What was refused is not made after all: its caller was told to try again.
        await until(self._nothing_else, 120)

    async def _nothing_else(self):
        _, found, _ = await self.replica.call("GET", "/v1/runs?project=crew")
        return found["pagination"]["total"] == len(self.runs) + BEFORE


async def checked(replica, kube):
    """A checker with a claimed run."""
    await replica.start()
    run, uid = await accepted(kube, replica, replica)
    answer = await replica.as_pod(name_of(run), uid, "claim", {"protocol": 1, "run_uid": uid})
    assert answer["state"] == "granted"
    checker = Checker(replica, kube, run, uid)
    assert await checker.good()
    return checker


async def ended(checker):
    """The run's end, as a reader sees it who followed all the time, and resumed where it was cut off."""
    when = format_second(datetime.now(UTC))
    status = {"phase": "Succeeded", "startTime": when, "completionTime": when}
    await checker.kube.patch(RUN, name_of(checker.run), {"status": status}, "status")


async def followed(checker, reader):
    """Follows to the terminal event."""
    while not reader.seen or reader.seen[-1][1] != "run.completed":
        await reader.follow(checker.replica)
        await asyncio.sleep(0.2)


async def whole(checker, reading, reader):
    await checker.all_is_there()
    await ended(checker)
    await asyncio.wait_for(reading, 120)
    assert [number for number, _, _ in reader.seen] == list(range(1, len(reader.seen) + 1))
    said = [text.split()[1] for _, kind, text in reader.seen if kind == "log"]
    assert said == [str(number) for number in range(1, checker.events + 1)]
    assert [kind for _, kind, _ in reader.seen].count("artifact") == len(checker.files)


@pytest.fixture
def small(tmp_path):
    """A file system of 16 MiB."""
    place = tmp_path / "small"
    place.mkdir()
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16m", "none", place], capture_output=True)
    if done.returncode:
        pytest.skip("only root can mount a file system")
    yield place
    subprocess.run(["umount", "-l", place], check=True)


@contextlib.asynccontextmanager
async def full(place: Path):
    """No byte is left."""
    filler = place / "filler"
    with filler.open("wb", buffering=0) as file, contextlib.suppress(OSError):
        for size in (65536, 4096, 1):
            with contextlib.suppress(OSError):
                while True:
                    file.write(bytes(size))
    yield
    filler.unlink()


@contextlib.asynccontextmanager
async def locked(index: Path):
    """Another process writes to the index, and does not end."""
    other = sqlite3.connect(index, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    yield
    other.execute("ROLLBACK")
    other.close()


async def test_full_or_locked_data_directory(small, kube):
    replica = Replica(kube.namespace, small / "data", {}, draw())
    try:
        checker = await checked(replica, kube)
        reader = Reader(checker.run)
        reading = asyncio.create_task(followed(checker, reader))
        await checker.bites(full(small), "_say", "_store")
        await checker.bites(locked(small / "data" / INDEX), "_accept", "_upload", "_store")
        await whole(checker, reading, reader)
    finally:
        await replica.end(signal.SIGKILL)


@contextlib.asynccontextmanager
async def gone(server):
    """The server is killed, and started again."""
    await asyncio.to_thread(server.stop)
    yield
    await asyncio.to_thread(server.start)


@contextlib.asynccontextmanager
async def silent(server: s3.S3Server):
    """The object store neither answers nor goes away."""
    server.signal(signal.SIGSTOP)
    yield
    server.signal(signal.SIGCONT)


@contextlib.asynccontextmanager
async def closed(server: s3.S3Server):
    """The object store does not take the credentials."""
    await asyncio.to_thread(server.stop)
    await asyncio.to_thread(server.start, "another-secret")
    yield
    await asyncio.to_thread(server.stop)
    await asyncio.to_thread(server.start)


async def test_database_or_bucket_outage(tmp_path, kube):
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
    replica = Replica(kube.namespace, tmp_path / "data", settings, draw())
    index = ("_list", "_page", "_accept", "_say", "_store", "_upload")
    try:
        checker = await checked(replica, kube)
        reader = Reader(checker.run)
        reading = asyncio.create_task(followed(checker, reader))
        await checker.bites(pg.halted(database), *index)
        await checker.bites(gone(database), *index)
        for fault in (gone, silent, closed):
            await checker.bites(fault(bucket), "_store", "_read")
        await whole(checker, reading, reader)
    finally:
        await replica.end(signal.SIGKILL)
        database.close()
        bucket.close()
