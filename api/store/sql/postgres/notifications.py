"""Rings between replicas, through PostgreSQL's LISTEN and NOTIFY. Opened by `api.store.store`.

A ring is a hint: a replica that missed some, because its connection was lost or the
other one died before it told, looks again when the connection is back, and at the
latest when its readers' waiting ends. So nothing here is repeated or kept.
"""

import asyncio
import secrets
from typing import Any

import asyncpg
import structlog

from api.store.sql.notifier import Signals
from api.store.sql.postgres.engine import CONNECT_SECONDS, direct

log = structlog.get_logger()

WAITING = 10_000
"""Rings held back while the connection is away; beyond that all is rung when it is back anyway."""
AT_ONCE = 500
PULSE = 5.0
"""Seconds of silence after which the connection is tried."""
MAX_PAUSE = 2.0


class SharedSignals(Signals):
    """Rings that reach the other replicas too."""

    alone = False

    def __init__(self, topic: str, relay: "Relay") -> None:
        super().__init__()
        self._topic = topic
        self._relay = relay

    def ring(self, key: str) -> None:
        """Wakes all who wait for the key, in every replica."""
        self._hear(key)
        self._relay.tell(self._topic, key)

    def heard(self, key: str) -> None:
        """Another replica rang."""
        self._hear(key)


class Relay:
    """One connection that tells and hears the rings of one namespace."""

    def __init__(self, url: str, namespace: str) -> None:
        self._url, self._tls = direct(url)
        self._channel = f"crewyard_{namespace}"
        self._self = secrets.token_hex(4)
        self._waiting: dict[str, None] = {}
        self._some = asyncio.Event()
        self._topics: dict[str, SharedSignals] = {}
        self._task: asyncio.Task[None] | None = None

    def topic(self, name: str) -> SharedSignals:
        """The rings of this name."""
        return self._topics.setdefault(name, SharedSignals(name, self))

    def tell(self, topic: str, key: str) -> None:
        """Sends a ring soon; the same one waits once."""
        if len(self._waiting) < WAITING:
            self._waiting[f"{self._self} {topic} {key}"] = None
            self._some.set()

    def start(self) -> None:
        """Begins to tell and to hear, until `close`."""
        self._task = asyncio.create_task(self._forever(), name="rings between replicas")

    async def close(self) -> None:
        """Ends it."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait((self._task,), timeout=5)

    async def _forever(self) -> None:
        pause = 0.1
        while True:
            try:
                async with asyncio.timeout(2 * CONNECT_SECONDS):
                    connection = await asyncpg.connect(
                        self._url, timeout=CONNECT_SECONDS, command_timeout=CONNECT_SECONDS, **self._tls
                    )
                try:
                    await connection.add_listener(self._channel, self._heard)
                    for signals in self._topics.values():
                        signals.wake_all()
                    pause = 0.1
                    await self._talk(connection)
                finally:
                    connection.terminate()
            except (asyncpg.PostgresError, asyncpg.InterfaceError, OSError) as error:
                log.warning("rings between replicas interrupted", error=error.__class__.__name__)
            await asyncio.sleep(pause)
            pause = min(pause * 2, MAX_PAUSE)

    async def _talk(self, connection: Any) -> None:
        while True:
            try:
                async with asyncio.timeout(PULSE):
                    await self._some.wait()
            except TimeoutError:
                await connection.execute("select 1")
                continue
            batch = list(self._waiting)[:AT_ONCE]
            for one in batch:
                del self._waiting[one]
            if not self._waiting:
                self._some.clear()
            await connection.execute(
                "select pg_notify($1, told) from unnest($2::text[]) as told", self._channel, batch
            )

    def _heard(self, _connection: Any, _pid: int, _channel: str, payload: object) -> None:
        who, topic, key = str(payload).split(" ", 2)
        if who != self._self and topic in self._topics:
            self._topics[topic].heard(key)
