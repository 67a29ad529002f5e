"""The leading replica: the one whose session holds a lock of PostgreSQL. Opened by `api.store.backend`.

The lock ends with its session: at once where the process is killed, after some
seconds where its machine vanished or it was stopped, since the session is given up
by the server once its pulse is missing.
"""

import asyncio
from typing import Any

import asyncpg
import structlog

from api.store.sql.leader import Leader, Work
from api.store.sql.postgres.engine import CONNECT_SECONDS, direct, lock_number

log = structlog.get_logger()

PULSE = 1.0
"""Seconds between two signs of life, and between two tries to lead."""
_GIVEN_UP = {
    "application_name": "crewyard-api-leader",
    "idle_session_timeout": "5000",
    "tcp_keepalives_idle": "2",
    "tcp_keepalives_interval": "1",
    "tcp_keepalives_count": "3",
}
MAX_PAUSE = 2.0


class PostgresLeader(Leader):
    """One of the replicas of one namespace."""

    def __init__(self, url: str, namespace: str) -> None:
        self._url, self._tls = direct(url)
        self._number = lock_number(f"leader/{namespace}")

    async def lead(self, work: Work) -> None:
        """As `Leader.lead`."""
        pause = 0.1
        while True:
            try:
                connection = await asyncpg.connect(
                    self._url,
                    timeout=CONNECT_SECONDS,
                    command_timeout=CONNECT_SECONDS,
                    server_settings=_GIVEN_UP,
                    **self._tls,
                )
                try:
                    await self._win(connection)
                    pause = 0.1
                    await self._work(connection, work)
                    return
                finally:
                    connection.terminate()
            except (asyncpg.PostgresError, asyncpg.InterfaceError, OSError) as error:
                log.warning("leading interrupted", error=error.__class__.__name__)
            await asyncio.sleep(pause)
            pause = min(pause * 2, MAX_PAUSE)

    async def _win(self, connection: Any) -> None:
        while not await connection.fetchval("select pg_try_advisory_lock($1)", self._number):
            self.elsewhere = True
            await asyncio.sleep(PULSE)
        self.elsewhere = False
        log.info("this replica leads")

    async def _work(self, connection: Any, work: Work) -> None:
        task = asyncio.ensure_future(work())
        self.leading = True
        try:
            while not task.done():
                await asyncio.wait((task,), timeout=PULSE)
                await connection.execute("select 1")
            await task
        finally:
            self.leading = False
            task.cancel()
            await asyncio.wait((task,))
