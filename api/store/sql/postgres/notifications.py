"""Notifications between replicas, through PostgreSQL's LISTEN and NOTIFY. Opened by `api.store.store`.

A notification is a hint: a replica that missed some, because its connection was lost or the sender died
first, checks again when it has reconnected, and at the latest when its readers' wait times out. So nothing
here is stored; what a broken connection did not confirm is sent again.
"""

import asyncio
import hashlib
import secrets
from typing import Any

import asyncpg
import structlog

from api.store.sql.notifier import Notifier
from api.store.sql.postgres.engine import CONNECT_SECONDS, asyncpg_arguments

log = structlog.get_logger()

MAX_PENDING_NOTIFICATIONS = 10_000
"""Pending while disconnected; more are dropped, since reconnecting wakes everything anyway."""
NOTIFICATIONS_PER_STATEMENT = 500
KEEPALIVE_SECONDS = 5.0
"""Seconds of silence after which the connection is checked."""
MAX_RETRY_SECONDS = 2.0
MAX_CHANNEL_CHARACTERS = 63
"""PostgreSQL truncates a longer name where it listens, and refuses it where it notifies."""


def channel_of(namespace: str) -> str:
    """Return the channel of a namespace, which may have 63 characters itself. Pure."""
    name = f"crewyard_{namespace}"
    if len(name) <= MAX_CHANNEL_CHARACTERS:
        return name
    return f"crewyard_{hashlib.sha256(namespace.encode()).hexdigest()[:40]}"


class PostgresNotifier(Notifier):
    """A notifier that also reaches the other replicas."""

    single_process = False

    def __init__(self, topic: str, relay: "NotificationRelay") -> None:
        super().__init__()
        self._topic = topic
        self._relay = relay

    def notify(self, key: str) -> None:
        """Wake all waiters of the key, in every replica."""
        self._wake(key)
        self._relay.send(self._topic, key)

    def receive(self, key: str) -> None:
        """Wake the waiters of this replica, after another replica has notified."""
        self._wake(key)


class NotificationRelay:
    """One connection that sends and receives the notifications of one namespace."""

    def __init__(self, url: str, namespace: str) -> None:
        self._url, self._tls = asyncpg_arguments(url)
        self._channel = channel_of(namespace)
        self._sender = secrets.token_hex(4)
        self._pending: dict[str, None] = {}
        self._has_pending = asyncio.Event()
        self._topics: dict[str, PostgresNotifier] = {}
        self._task: asyncio.Task[None] | None = None

    def topic(self, name: str) -> PostgresNotifier:
        """Return the notifier of a topic."""
        return self._topics.setdefault(name, PostgresNotifier(name, self))

    def send(self, topic: str, key: str) -> None:
        """Queue a notification; an identical pending one is sent once."""
        if len(self._pending) < MAX_PENDING_NOTIFICATIONS:
            self._pending[f"{self._sender} {topic} {key}"] = None
            self._has_pending.set()

    def start(self) -> None:
        """Start to send and receive, until `close`."""
        self._task = asyncio.create_task(self._run(), name="notifications between replicas")

    async def close(self) -> None:
        """Stop sending and receiving."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait((self._task,), timeout=5)

    async def _run(self) -> None:
        pause = 0.1
        while True:
            try:
                async with asyncio.timeout(2 * CONNECT_SECONDS):
                    connection = await asyncpg.connect(
                        self._url, timeout=CONNECT_SECONDS, command_timeout=CONNECT_SECONDS, **self._tls
                    )
                try:
                    await connection.add_listener(self._channel, self._on_notification)
                    for notifier in self._topics.values():
                        notifier.wake_all()
                    pause = 0.1
                    await self._send_pending(connection)
                finally:
                    connection.terminate()
            except Exception as error:
                log.warning("notifications between replicas interrupted", error=error.__class__.__name__)
            await asyncio.sleep(pause)
            pause = min(pause * 2, MAX_RETRY_SECONDS)

    async def _send_pending(self, connection: Any) -> None:
        while True:
            try:
                async with asyncio.timeout(KEEPALIVE_SECONDS):
                    await self._has_pending.wait()
            except TimeoutError:
                await connection.execute("select 1")
                continue
            batch = list(self._pending)[:NOTIFICATIONS_PER_STATEMENT]
            for payload in batch:
                del self._pending[payload]
            if not self._pending:
                self._has_pending.clear()
            try:
                await connection.execute(
                    "select pg_notify($1, payload) from unnest($2::text[]) as payload", self._channel, batch
                )
            except BaseException:
                self._pending = dict.fromkeys(batch) | self._pending
                self._has_pending.set()
                raise

    def _on_notification(self, _connection: Any, _pid: int, _channel: str, payload: object) -> None:
        sender, topic, key = str(payload).split(" ", 2)
        if sender != self._sender and topic in self._topics:
            self._topics[topic].receive(key)
