"""Faults of a PostgreSQL server as context managers. Called by the tests of outages."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

import asyncpg

from tests.campaign.outages.network.link import Link
from tests.campaign.outages.network.rule import GarbageBytes, LinkRule
from tests.testbed.ports import free_port
from tests.unit.api.store import postgres_server as pg

OURS = "select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'crewyard-api'"
MOST_CONNECTIONS = 40


class PostgresBehindLink(pg.PostgresServer):
    """A server that listens on a port of loopback."""

    def __init__(self) -> None:
        self.port = free_port()
        super().__init__(
            {
                "listen_addresses": "127.0.0.1",
                "port": str(self.port),
                "max_connections": str(MOST_CONNECTIONS),
            }
        )

    def address(self, name: str, port: int) -> str:
        """The URL of a database by a link's port."""
        return f"postgresql+asyncpg://crewyard:{pg.PASSWORD}@127.0.0.1:{port}/{name}"


@contextlib.asynccontextmanager
async def killed(server: PostgresBehindLink) -> AsyncIterator[None]:
    """It is killed, as by a crash, and started again."""
    await asyncio.to_thread(server.stop)
    try:
        yield
    finally:
        await asyncio.to_thread(server.start)


@contextlib.asynccontextmanager
async def read_only(server: PostgresBehindLink) -> AsyncIterator[None]:
    """It takes no writes, as one that was just demoted."""
    await asyncio.to_thread(_set_read_only, server, "on")
    try:
        yield
    finally:
        await asyncio.to_thread(_set_read_only, server, "off")


def _set_read_only(server: PostgresBehindLink, value: str) -> None:
    server.sql("postgres", f"alter system set default_transaction_read_only = {value}")
    server.sql("postgres", "select pg_reload_conf()")


@contextlib.asynccontextmanager
async def exhausted(server: PostgresBehindLink) -> AsyncIterator[None]:
    """Others hold all its connections, and those of the product are ended."""
    held: list[asyncpg.Connection] = []
    taking = asyncio.create_task(_take(server, held))
    try:
        yield
    finally:
        taking.cancel()
        await asyncio.gather(taking, return_exceptions=True)
        for one in held:
            one.terminate()


async def _take(server: PostgresBehindLink, held: list[asyncpg.Connection]) -> None:
    place = {"host": str(server.directory), "port": server.port, "user": "crewyard", "database": "postgres"}
    while True:
        with contextlib.suppress(asyncpg.PostgresError, OSError):
            while True:
                held.append(await asyncpg.connect(**place, password=pg.PASSWORD))
        if held:
            await held[0].execute(OURS)
        await asyncio.sleep(0.02)


@contextlib.asynccontextmanager
async def mad(link: Link) -> AsyncIterator[LinkRule]:
    """New connections are answered with garbage.

    Connections that were there are broken off before: the driver (asyncpg 0.32) reads such an answer in the
    middle of one and never returns. The liveness probe restarts the API server then; a test bed has none.
    """
    link.hang_up()
    async with link.fault(GarbageBytes()) as rule:
        yield rule


@contextlib.asynccontextmanager
async def flapping(link: Link) -> AsyncIterator[None]:
    """All connections are broken off again and again."""

    async def flap() -> None:
        while True:
            link.hang_up()
            await asyncio.sleep(0.3)

    task = asyncio.create_task(flap())
    try:
        yield
    finally:
        task.cancel()
