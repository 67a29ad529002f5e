"""Fixtures of a real store, with SQLite in a temporary directory and with PostgreSQL."""

import asyncio
import shutil
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from api.store.backend import INDEX
from api.store.sql.migrate import migrate_postgres
from api.store.store import Store
from tests.unit.api.store import bucket as s3
from tests.unit.api.store.postgres_server import MISSING, PROGRAMS, PostgresServer


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """Run a PostgreSQL server with the database `filled`, which has the schema."""
    if not (PROGRAMS / "postgres").exists():
        pytest.skip(MISSING)
    server = PostgresServer()
    try:
        server.sql("postgres", "create database filled template template0")
        asyncio.run(migrate_postgres(server.url("filled")))
        yield server
    finally:
        server.close()


@pytest.fixture(params=["sqlite", "postgres"])
def database_url(request: pytest.FixtureRequest) -> str | None:
    """Return the URL of a new database with the schema; None for SQLite."""
    if request.param == "sqlite":
        return None
    server: PostgresServer = request.getfixturevalue("postgres")
    return server.database("filled")


@pytest.fixture(params=["sqlite", "postgres"])
def empty_database(request: pytest.FixtureRequest) -> str | None:
    """Return the same as `database_url`, without the schema."""
    return None if request.param == "sqlite" else request.getfixturevalue("postgres").database()


@pytest.fixture
async def store(tmp_path: Path, database_url: str | None, empty: Path) -> AsyncIterator[Store]:
    if database_url is None:
        (tmp_path / "data").mkdir()
        shutil.copy(empty, tmp_path / "data" / INDEX)
    opened = await Store.open(tmp_path / "data", "crews", database_url)
    yield opened
    await opened.close()


@pytest.fixture(scope="session")
def s3_server() -> Iterator[s3.S3Server]:
    """Run an S3 server without buckets."""
    program = s3.program()
    if program is None:
        pytest.skip(s3.MISSING)
    server = s3.S3Server(program)
    yield server
    server.close()


@pytest.fixture
def bucket(s3_server: s3.S3Server, monkeypatch: pytest.MonkeyPatch) -> s3.S3Server:
    """Return the S3 server, with the environment that points to it."""
    for name, value in s3_server.environment.items():
        monkeypatch.setenv(name, value)
    return s3_server
