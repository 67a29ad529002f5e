"""A real store: in a directory of its own, and in a database of its own."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from api.store.sql.migrate import migrate_postgres
from api.store.store import Store
from tests.unit.api.store import bucket as s3
from tests.unit.api.store.postgres_server import MISSING, PROGRAMS, Server


@pytest.fixture(scope="session")
def postgres() -> Iterator[Server]:
    """A PostgreSQL server with the database `filled`, which has the schema."""
    if not (PROGRAMS / "postgres").exists():
        pytest.skip(MISSING)
    server = Server()
    try:
        server.sql("postgres", "create database filled template template0")
        asyncio.run(migrate_postgres(server.url("filled")))
        yield server
    finally:
        server.close()


@pytest.fixture(params=["sqlite", "postgres"])
def database_url(request: pytest.FixtureRequest) -> str | None:
    """A new, empty database; None for the one in the store's directory."""
    if request.param == "sqlite":
        return None
    server: Server = request.getfixturevalue("postgres")
    return server.database("filled")


@pytest.fixture(params=["sqlite", "postgres"])
def empty_database(request: pytest.FixtureRequest) -> str | None:
    """As `database_url`, without the schema."""
    return None if request.param == "sqlite" else request.getfixturevalue("postgres").database()


@pytest.fixture
async def store(tmp_path: Path, database_url: str | None) -> AsyncIterator[Store]:
    opened = await Store.open(tmp_path / "data", "crews", database_url)
    yield opened
    await opened.close()


@pytest.fixture(scope="session")
def s3_server() -> Iterator[s3.Server]:
    """An S3 server without buckets."""
    program = s3.program()
    if program is None:
        pytest.skip(s3.MISSING)
    server = s3.Server(program)
    yield server
    server.close()


@pytest.fixture
def bucket(s3_server: s3.Server, monkeypatch: pytest.MonkeyPatch) -> s3.Server:
    """The S3 server, with the environment that leads there."""
    for name, value in s3_server.environment.items():
        monkeypatch.setenv(name, value)
    return s3_server
