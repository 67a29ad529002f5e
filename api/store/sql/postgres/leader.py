"""Leader election by a PostgreSQL advisory lock, whose session leads. Opened by `api.store.backend`.

The lock ends with its session: immediately if the process is killed; after some seconds if its machine
vanishes or stops, since the server closes the session once its keepalives are missing.
"""

import asyncio
from typing import Any

import asyncpg
import structlog

from api.store.sql.leader import Leader, Work
from api.store.sql.postgres.engine import CONNECT_SECONDS, asyncpg_arguments, lock_number

log = structlog.get_logger()

KEEPALIVE_SECONDS = 1.0
"""Seconds between two keepalives, and between two attempts to lead."""
_SESSION_SETTINGS = {
    "application_name": "crewyard-api-leader",
    "idle_session_timeout": "5000",
    "tcp_keepalives_idle": "2",
    "tcp_keepalives_interval": "1",
    "tcp_keepalives_count": "3",
}
MAX_RETRY_SECONDS = 2.0


class PostgresLeader(Leader):
    """One replica of a namespace."""

    def __init__(self, url: str, namespace: str) -> None:
        self._url, self._tls = asyncpg_arguments(url)
        self._number = lock_number(f"leader/{namespace}")

    async def lead(self, work: Work) -> None:
        """Implement `Leader.lead`."""
        pause = 0.1
        while True:
            try:
                connection = await asyncpg.connect(
                    self._url,
                    timeout=CONNECT_SECONDS,
                    command_timeout=CONNECT_SECONDS,
                    server_settings=_SESSION_SETTINGS,
                    **self._tls,
                )
                try:
                    await self._acquire(connection)
                    pause = 0.1
                    await self._run_while_leading(connection, work)
                    return
                finally:
                    connection.terminate()
            except (asyncpg.PostgresError, asyncpg.InterfaceError, OSError) as error:
                log.warning("leader election interrupted", error=error.__class__.__name__)
            await asyncio.sleep(pause)
            pause = min(pause * 2, MAX_RETRY_SECONDS)

    async def _acquire(self, connection: Any) -> None:
        while not await connection.fetchval("select pg_try_advisory_lock($1)", self._number):
            self.other_leader_seen = True
            await asyncio.sleep(KEEPALIVE_SECONDS)
        self.other_leader_seen = False
        log.info("this replica leads")

    async def _run_while_leading(self, connection: Any, work: Work) -> None:
        task = asyncio.ensure_future(work())
        self.leading = True
        try:
            while not task.done():
                await asyncio.wait((task,), timeout=KEEPALIVE_SECONDS)
                await connection.execute("select 1")
            await task
        finally:
            self.leading = False
            task.cancel()
            await asyncio.wait((task,))
