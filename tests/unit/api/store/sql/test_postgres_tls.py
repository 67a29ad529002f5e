"""Tests of TLS to PostgreSQL: every connection checks the certificate."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from api.config import ApiConfigError, parse
from api.store.errors import StoreUnavailable
from api.store.store import Store
from tests.testbed.certificates import certificate
from tests.testbed.ports import free_port
from tests.unit.api.store import builders
from tests.unit.api.store.postgres_server import PASSWORD, PostgresServer

SECONDS = 60


@pytest.fixture
def port(postgres: PostgresServer, tmp_path: Path) -> Iterator[int]:
    """Run a second server with TLS and return its port; its authority is the file `server.crt`."""
    number = free_port()
    made = certificate("localhost")
    (tmp_path / "server.key").write_text(made.key)
    (tmp_path / "server.crt").write_text(made.text)
    server = PostgresServer({"port": str(number), "listen_addresses": "localhost", "ssl": "on"}, tmp_path)
    try:
        server.database()
        yield number
    finally:
        server.close()


def url(port: int, mode: str, host: str = "localhost") -> str:
    return f"postgresql+asyncpg://crewyard:{PASSWORD}@{host}:{port}/postgres?{mode}"


@pytest.mark.parametrize("mode", ["ssl=verify-full", "ssl=verify-ca", "sslmode=verify-full", "ssl=require"])
async def test_each_connection_is_by_tls(port, tmp_path, monkeypatch, mode):
    if "verify" in mode:
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "server.crt"))
    store = await Store.open(tmp_path, "crews", url(port, mode))
    leads = asyncio.Event()

    async def work() -> None:
        leads.set()
        await asyncio.Event().wait()

    leading = asyncio.create_task(store.leader.lead(work))
    try:
        await builders.add_demo_project(store)
        await asyncio.wait_for(leads.wait(), SECONDS)
    finally:
        leading.cancel()
        await asyncio.wait((leading,))
        await store.close()


async def test_unknown_authority_is_refused(port, tmp_path, monkeypatch):
    with pytest.raises(StoreUnavailable, match="certificate verify failed"):
        await Store.open(tmp_path, "crews", url(port, "ssl=verify-full"))
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "server.crt"))
    with pytest.raises(StoreUnavailable, match=r"127\.0\.0\.1"):
        await Store.open(tmp_path, "crews", url(port, "ssl=verify-full", host="127.0.0.1"))


def test_unknown_mode_error_shows_no_password():
    with pytest.raises(
        ApiConfigError, match=r"CREWYARD_DATABASE_URL: ssl must be one of .*verify-full"
    ) as error_info:
        parse({"CREWYARD_TOKEN_KEY": "k" * 32, "CREWYARD_DATABASE_URL": url(5432, "ssl=true")})
    assert PASSWORD not in str(error_info.value)
