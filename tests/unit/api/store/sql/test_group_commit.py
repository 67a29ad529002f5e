"""Writers that wait at the same time share one commit, and nothing else."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy.ext.asyncio import AsyncConnection

from api.store.errors import StoreUnavailable
from api.store.sql.sqlite_driver import SqliteConnection
from api.store.store import Store

Work = Callable[[AsyncConnection], Awaitable[object]]


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    opened = await Store.open(tmp_path / "data", "crews")
    # The dialect rolls back once, when it connects.
    await opened.ready()
    yield opened
    await opened.close()


@pytest.fixture
def commits(store: Store, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return how transactions that wrote ended, in order."""
    ends: list[str] = []
    for name in ("commit", "rollback"):
        end = getattr(SqliteConnection, name)

        async def counted(connection: SqliteConnection, name: str = name, end: Any = end) -> None:
            if connection._writes and connection.in_transaction:
                ends.append(name)
            await end(connection)

        monkeypatch.setattr(SqliteConnection, name, counted)
    return ends


def insert(number: int) -> Work:
    async def work(connection: AsyncConnection) -> None:
        await connection.exec_driver_sql("INSERT INTO sequences VALUES ('test', ?, ?)", (str(number), number))

    return work


async def numbers(store: Store) -> list[int]:
    async with store.database.read() as connection:
        query = "SELECT value FROM sequences WHERE namespace = 'test' ORDER BY value"
        return list((await connection.exec_driver_sql(query)).scalars())


async def write(store: Store, work: Work, durable: bool = True, brief: bool = True) -> None:
    database = store.database
    async with database.brief_write(durable=durable) if brief else database.write() as connection:
        await work(connection)


async def together(store: Store, *works: Work, cancel: int | None = None, **options: bool) -> list[object]:
    """Let the first writer hold the connection until all others wait. Return what each got."""
    entered, free = asyncio.Event(), asyncio.Event()

    async def held(connection: AsyncConnection) -> None:
        entered.set()
        await free.wait()
        await works[0](connection)

    first = asyncio.create_task(write(store, held, brief=options.get("brief", True)))
    await entered.wait()
    others = [asyncio.create_task(write(store, work, **options)) for work in works[1:]]
    while store.database._queued < len(others):
        await asyncio.sleep(0)
    if cancel is not None:
        others[cancel - 1].cancel()
    free.set()
    async with asyncio.timeout(60):
        return list(await asyncio.gather(first, *others, return_exceptions=True))


@pytest.mark.parametrize("options", [{}, {"brief": False}, {"durable": False}])
async def test_waiting_writers_share_one_commit(
    store: Store, commits: list[str], options: dict[str, bool]
) -> None:
    ends = await together(store, *(insert(number) for number in range(8)), **options)
    assert ends == [None] * 8 and commits == ["commit"]
    assert await numbers(store) == list(range(8))


async def test_a_writer_alone_has_a_commit_of_its_own(store: Store, commits: list[str]) -> None:
    for number in range(3):
        await write(store, insert(number))
    assert commits == ["commit"] * 3 and await numbers(store) == [0, 1, 2]


async def test_no_reader_and_no_writer_goes_ahead_of_the_commit(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen, ended = [], []
    commit = SqliteConnection.commit

    async def slow(connection: SqliteConnection) -> None:
        if connection._writes and connection.in_transaction:
            for _ in range(20):
                await asyncio.sleep(0)
            seen.append((await numbers(store), list(ended)))
        await commit(connection)

    monkeypatch.setattr(SqliteConnection, "commit", slow)

    async def noted(number: int) -> None:
        await write(store, insert(number))
        ended.append(number)

    await asyncio.gather(*(noted(number) for number in range(4)))
    # The first is alone: the others came while it was committed.
    assert seen == [([], []), ([0], [0])] and ended == [0, 1, 2, 3]


@pytest.mark.parametrize("wrong", [0, 1, 3])
async def test_a_writer_that_fails_is_undone_alone(store: Store, wrong: int) -> None:
    async def fail(connection: AsyncConnection) -> None:
        await insert(wrong)(connection)
        raise ZeroDivisionError

    works = [fail if number == wrong else insert(number) for number in range(4)]
    ends = await together(store, *works)
    assert [type(end) for end in ends].index(ZeroDivisionError) == wrong
    assert ends.count(None) == 3
    assert await numbers(store) == [number for number in range(4) if number != wrong]


async def test_a_canceled_writer_cancels_no_other(store: Store) -> None:
    ends = await together(store, *(insert(number) for number in range(4)), cancel=2)
    assert isinstance(ends[2], asyncio.CancelledError)
    assert set(await numbers(store)) >= {0, 1, 3}
    await write(store, insert(9))


async def test_a_failed_commit_fails_all_and_stores_nothing(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit = SqliteConnection.commit
    broken = [True]

    async def failing(connection: SqliteConnection) -> None:
        if connection._writes and connection.in_transaction and broken:
            broken.clear()
            raise sqlite3.OperationalError("disk I/O error")
        await commit(connection)

    monkeypatch.setattr(SqliteConnection, "commit", failing)
    ends = await together(store, insert(0), insert(1), insert(2))
    assert all(isinstance(end, StoreUnavailable) for end in ends), ends
    assert await numbers(store) == []
    await write(store, insert(3))
    assert await numbers(store) == [3]


async def test_a_transaction_that_sqlite_rolled_back_fails_all(store: Store) -> None:
    """As it does when the disk is full."""

    async def lose(connection: AsyncConnection) -> None:
        raw: Any = (await connection.get_raw_connection()).driver_connection
        raw._raw.execute("ROLLBACK")

    ends = await together(store, insert(0), lose, insert(2))
    assert all(isinstance(end, StoreUnavailable) for end in ends), ends
    assert await numbers(store) == []
    await write(store, insert(3))
    assert await numbers(store) == [3]
