"""Tests of the PostgreSQL engine: settings, timeouts, errors while it is unreachable."""

import asyncio
import signal
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

import pytest
from sqlalchemy import event, text
from sqlalchemy.engine import Engine

from api.config import ApiConfigError, parse
from api.store.errors import StoreUnavailable
from api.store.logs import postgres_event_logs
from api.store.logs.event_log import NewEvent
from api.store.sql.postgres.engine import parse_url
from api.store.store import Store
from api.store.token_counts import TokenCounts
from crds.objects import Deployment
from tests.unit.api.store import builders
from tests.unit.api.store.postgres_server import PASSWORD, PostgresServer

T = TypeVar("T")

HANG_SECONDS = 60.0
"""Far above the server's timeouts, which are seconds: a call without one would hang."""


async def until_available(call: Callable[[], Awaitable[T]]) -> T:
    """Return what the call returns; call again while the machine is too busy for the product's timeouts."""
    async with asyncio.timeout(HANG_SECONDS):
        while True:
            try:
                return await call()
            except StoreUnavailable:
                await asyncio.sleep(0.1)


@pytest.fixture
def url(postgres: PostgresServer) -> str:
    return postgres.database("filled")


@pytest.fixture
async def store(tmp_path: Path, url: str) -> AsyncIterator[Store]:
    opened = await until_available(lambda: Store.open(tmp_path, "crews", url))
    yield opened
    await opened.close()


@pytest.mark.usefixtures("product_timeouts")
async def test_durability_and_timeout_settings(store: Store) -> None:
    async def settings() -> dict[str, str]:
        async with store.database.write() as connection:
            return {
                name: (await connection.execute(text(f"show {name}"))).scalar_one()
                for name in ("synchronous_commit", "statement_timeout", "lock_timeout")
            }

    assert await until_available(settings) == {
        "synchronous_commit": "on",
        "statement_timeout": "2s",
        "lock_timeout": "1500ms",
    }


async def test_unstorable_characters_round_trip(store: Store) -> None:
    await builders.add_demo_project(store)
    odd = "a\0b\ud800c\ue000"
    run = await builders.claim_run(store, input={odd: odd})
    assert (await store.runs.get(run)).input == {odd: odd}  # type: ignore[union-attr]
    assert await store.runs.get(odd) is None
    await store.artifacts.put(run, odd, 3, "1", "text/plain", False, "b", builders.NOW)
    error = {"reason": "CrewError", "message": odd}
    await store.run_writer.observe(builders.run(run, "Failed", error=error), builders.NOW)
    artifact = await store.artifacts.get(run, odd)
    assert artifact is not None and (artifact.name, artifact.partial) == (odd, False)
    assert (await store.events.read(run, 1, 9)).events[-1].data["error"] == error


async def test_tokens_of_a_log_are_read_in_bounded_ranges(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    await builders.add_demo_project(store)
    run = await builders.claim_run(store)
    async with store.events.open_writer(run) as log:
        for number in range(1, 6):
            usage = {"model": "m", "prompt_tokens": 10**number, "completion_tokens": number}
            await log.append([NewEvent(number, "usage" if number != 2 else "log", usage)])
    monkeypatch.setattr(postgres_event_logs, "RECORDS_PER_BATCH", 2)
    ranges = []

    def note(_connection: Any, _cursor: Any, statement: str, parameters: Any, *_: Any) -> None:
        if "strpos" in statement:
            ranges.append([value for value in parameters if isinstance(value, int)])

    event.listen(Engine, "before_cursor_execute", note)
    try:
        assert await store.events.tokens(run) == TokenCounts(111_010, 13, {"m": (111_010, 13)})
    finally:
        event.remove(Engine, "before_cursor_execute", note)
    assert [found[:2] for found in ranges] == [[1, 2], [3, 4], [5, 6]]


async def test_invalid_value_is_not_unavailable(store: Store) -> None:
    whole = builders.deployment().raw
    with pytest.raises(ValueError, match="cannot store"):
        await store.deployments.observe(Deployment({**whole, "spec": {**whole["spec"], "activation": 2**70}}))


@pytest.mark.usefixtures("product_timeouts")
async def test_foreign_lock_times_out_and_readers_continue(store: Store, tmp_path: Path, url: str) -> None:
    await until_available(lambda: builders.add_demo_project(store))
    other = await until_available(lambda: Store.open(tmp_path, "crews", url))
    async with other.database.write():
        async with asyncio.timeout(HANG_SECONDS):
            with pytest.raises(StoreUnavailable):
                await store.ready()
        assert (await until_available(lambda: store.projects.page(0, 1))).total == 1
    await until_available(store.ready)
    await other.close()


async def test_restarted_database_recovers(tmp_path: Path) -> None:
    server = PostgresServer()
    try:
        store = await Store.open(tmp_path, "crews", server.database())
        await builders.add_demo_project(store)
        run = await builders.claim_run(store)
        server.stop(signal.SIGQUIT)
        for call in (store.ready(), store.projects.get("demo"), store.events.read(run, 0, 9)):
            async with asyncio.timeout(HANG_SECONDS):
                with pytest.raises(StoreUnavailable) as raised:
                    await call
            assert PASSWORD not in str(raised.value)
        server.start()
        await until_available(store.ready)
        assert await store.claims.holds(run, "pod", "nonce")
        await store.close()
    finally:
        server.close()


@pytest.mark.usefixtures("product_timeouts")
async def test_silent_network_times_out(tmp_path: Path, postgres: PostgresServer) -> None:
    open_ = asyncio.Event()  # Closed, bytes are read and never arrive.
    open_.set()
    lines: list[asyncio.StreamWriter] = []

    async def pump(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
        while data := await source.read(65536):
            await open_.wait()
            target.write(data)
        target.close()

    async def through(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        up, down = await asyncio.open_unix_connection(postgres.directory / ".s.PGSQL.5432")
        lines.extend((writer, down))
        await asyncio.gather(pump(reader, down), pump(up, writer), return_exceptions=True)

    socket = tmp_path / "s"
    socket.mkdir()
    proxy = await asyncio.start_unix_server(through, socket / ".s.PGSQL.5432")
    name = postgres.database("filled").split("/@/")[-1].split("@/")[-1].split("?")[0]
    store = await until_available(lambda: Store.open(tmp_path, "crews", postgres.url(name, socket)))
    await until_available(store.ready)
    await until_available(lambda: store.projects.page(0, 1))
    open_.clear()
    for call in (store.ready, lambda: store.projects.page(0, 1)):
        async with asyncio.timeout(HANG_SECONDS):
            with pytest.raises(StoreUnavailable):
                await call()
    open_.set()
    await until_available(store.ready)
    await store.close()
    proxy.close()
    for line in lines:
        line.close()


async def test_error_shows_no_password(tmp_path: Path) -> None:
    for url in (
        f"postgresql://me:{PASSWORD}@127.0.0.1:9/x",
        f"postgresql://me:{PASSWORD}@/x?host={tmp_path}",
    ):
        with pytest.raises(StoreUnavailable) as raised:
            await Store.open(tmp_path, "crews", url)
        assert PASSWORD not in str(raised.value)


@pytest.mark.parametrize("text", ["mysql://a:secret@b/c", "postgresql://b", "nonsense secret", ""])
def test_invalid_url(text: str) -> None:
    with pytest.raises(ValueError) as raised:
        parse_url(text)
    assert "secret" not in str(raised.value)


def test_setting_is_validated() -> None:
    key = {"CREWYARD_TOKEN_KEY": "k" * 32}
    assert parse(key).database_url is None
    config = parse({**key, "CREWYARD_DATABASE_URL": "postgresql+asyncpg://me:hunter2@db/crewyard"})
    assert config.database_url is not None and "hunter2" not in repr(config)
    with pytest.raises(ApiConfigError, match="CREWYARD_DATABASE_URL: must be") as raised:
        parse({**key, "CREWYARD_DATABASE_URL": "mysql://me:secret@db/crewyard"})
    assert "secret" not in str(raised.value)


async def test_canceled_caller_frees_the_connection(store: Store, tmp_path: Path, url: str) -> None:
    await until_available(lambda: builders.add_demo_project(store))
    other = await Store.open(tmp_path, "crews", url)
    async with other.database.write():
        for call in (store.ready, lambda: store.projects.observe(builders.project())):
            waiting = asyncio.create_task(call())
            await asyncio.sleep(0.1)
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
    await until_available(store.ready)
    assert (await until_available(lambda: store.projects.page(0, 1))).total == 1
    await other.close()
