"""Tests of connections that die during COMMIT: committed transactions are acknowledged, others fail."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from api.store.errors import StoreUnavailable
from api.store.index.runs.runs import RunRequest
from api.store.store import Store
from api.v1.runs.create import create_run
from kube.client import KubeClient
from tests.testbed.apiserver import plain_client
from tests.unit.api.store import builders
from tests.unit.api.store.postgres_server import PostgresServer

REQUEST = RunRequest("demo", "dep-a", {})
COMMIT = b"COMMIT;\0"


class CommitCutter:
    """A proxy to the server that cuts one connection at its COMMIT."""

    def __init__(self, server: Path) -> None:
        self._server = server
        self.at = ""
        """What does not arrive of the next COMMIT: `question`, `question, unnoticed`, `answer`, or `answer,
        and all others`: then no server can be asked.
        """
        self.cuts = 0
        self.open = True
        """Whether other connections get through."""
        self._lines: list[asyncio.StreamWriter] = []

    async def through(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if not self.open:
            writer.close()
            return
        up, down = await asyncio.open_unix_connection(self._server)
        self._lines += [writer, down]

        async def answers() -> None:
            while data := await up.read(65536):
                writer.write(data)
            writer.close()

        back = asyncio.create_task(answers())
        while data := await reader.read(65536):
            if self.at and data.endswith(COMMIT):
                self.cuts += 1
                self.open = self.at != "answer, and all others"
                how, self.at = self.at, ""
                back.cancel()
                if how.startswith("answer"):
                    down.write(data)
                    await up.read(65536)
                writer.close()
                if how != "question, unnoticed":
                    down.close()
                return
            down.write(data)
        down.close()

    def close(self) -> None:
        for line in self._lines:
            line.close()


@pytest.fixture
async def kube() -> AsyncIterator[KubeClient]:
    """Return a client of an unreachable apiserver."""
    made = plain_client("http://127.0.0.1:9")
    yield made
    await made.close()


@pytest.fixture
async def cut(tmp_path: Path, postgres: PostgresServer) -> AsyncIterator[CommitCutter]:
    made = CommitCutter(postgres.directory / ".s.PGSQL.5432")
    (tmp_path / "s").mkdir()
    server = await asyncio.start_unix_server(made.through, tmp_path / "s" / ".s.PGSQL.5432")
    yield made
    server.close()
    made.close()


@pytest.fixture
async def store(tmp_path: Path, cut: CommitCutter, postgres: PostgresServer) -> AsyncIterator[Store]:
    name = postgres.database("filled").split("@/")[-1].split("?")[0]
    opened = await Store.open(tmp_path, "crews", postgres.url(name, tmp_path / "s"))
    await builders.add_demo_project(opened)
    yield opened
    await opened.close()


async def total(store: Store) -> int:
    return (await store.runs.page(0, 10)).total


async def test_lost_response_of_commit(store: Store, cut: CommitCutter) -> None:
    cut.at = "answer"
    name, _ = await asyncio.wait_for(store.runs.create(REQUEST, builders.NOW, None), 30)
    assert (cut.cuts, await total(store)) == (1, 1)
    assert await store.runs.get(name) is not None


@pytest.mark.parametrize("how", ["question", "question, unnoticed"])
async def test_lost_commit(store: Store, cut: CommitCutter, how: str) -> None:
    cut.at = how
    with pytest.raises(StoreUnavailable):
        await asyncio.wait_for(store.runs.create(REQUEST, builders.NOW, None), 30)
    assert (cut.cuts, await total(store)) == (1, 0)
    await store.runs.create(REQUEST, builders.NOW, None)
    assert await total(store) == 1


async def test_consecutive_commits_are_distinguished(store: Store, cut: CommitCutter) -> None:
    kept = 0
    for how in ("answer", "question", "", "answer", "question, unnoticed", "answer"):
        cut.at = how
        try:
            await store.runs.create(REQUEST, builders.NOW, None)
            kept += 1
        except StoreUnavailable:
            assert how.startswith("question")
        assert await total(store) == kept
    assert (cut.cuts, kept) == (5, 4)


async def test_unchanged_transaction_needs_no_flush(store: Store, cut: CommitCutter) -> None:
    cut.at = "answer"
    with pytest.raises(StoreUnavailable):
        async with store.database.write():
            pass
    assert cut.cuts == 1
    async with store.database.write():
        pass


async def test_run_with_unknown_commit_is_withdrawn(
    store: Store, cut: CommitCutter, kube: KubeClient
) -> None:
    cut.at = "answer, and all others"
    with pytest.raises(StoreUnavailable):
        await asyncio.wait_for(create_run(store, kube, REQUEST, builders.NOW), 30)
    cut.open = True
    async with asyncio.timeout(60):
        while not (await store.runs.unsettled(builders.later(1)))[0]:
            await asyncio.sleep(0.1)
    assert await total(store) == 0
    assert (await store.runs.unsettled(builders.later(1)))[1] == []
