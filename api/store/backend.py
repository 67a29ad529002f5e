"""Where index and logs are kept: in a directory, or in PostgreSQL. Called by `Store.open`."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy.exc import SQLAlchemyError

from api.store.errors import StoreUnavailable
from api.store.logs.build_logs import BuildLogs, FileBuildLogs
from api.store.logs.event_logs import EventLogs, FileEventLogs
from api.store.logs.postgres_build_logs import TableBuildLogs
from api.store.logs.postgres_event_logs import TableEventLogs
from api.store.sql.database import Database
from api.store.sql.directory_lock import DirectoryLock
from api.store.sql.leader import Alone, Leader
from api.store.sql.migrate import migrate, migrate_postgres
from api.store.sql.notifier import Signals
from api.store.sql.postgres.database import Postgres
from api.store.sql.postgres.leader import PostgresLeader
from api.store.sql.postgres.notifications import Relay
from api.store.sql.sqlite import Sqlite

INDEX = "index.sqlite3"


@dataclass(frozen=True)
class Kept:
    """The open places; `changes` rings for deployments, `told` for runs, `built` for build logs."""

    database: Database
    eventlogs: EventLogs
    buildlogs: BuildLogs
    changes: Signals
    told: Signals
    built: Signals
    leader: Leader
    release: Callable[[], Awaitable[None]]

    async def close(self) -> None:
        """Closes all; waiting readers return."""
        for signals in (self.changes, self.told, self.built):
            signals.close()
        await self.database.close()
        await self.release()


async def in_directory(directory: Path, namespace: str) -> Kept:
    """A SQLite file and segment files, for one process alone. Raises StoreUnavailable."""
    try:
        lock = await asyncio.to_thread(DirectoryLock, directory)
    except OSError as error:
        raise StoreUnavailable(f"the store in {directory} cannot be opened: {error}") from error
    try:
        await asyncio.to_thread(migrate, directory / INDEX)
    except (OSError, SQLAlchemyError) as error:
        lock.release()
        raise StoreUnavailable(f"the index in {directory} cannot be opened: {error}") from error

    async def release() -> None:
        lock.release()

    changes, told, built = Signals(), Signals(), Signals()
    return Kept(
        Sqlite(directory / INDEX),
        FileEventLogs(directory / "events" / namespace),
        FileBuildLogs(directory / "buildlogs" / namespace, built),
        changes,
        told,
        built,
        Alone(),
        release,
    )


async def in_postgres(url: str, namespace: str) -> Kept:
    """Tables, for any number of processes. Raises StoreUnavailable."""
    await migrate_postgres(url)
    database, relay = Postgres(url), Relay(url, namespace)
    changes, told, built = (relay.topic(name) for name in ("changes", "told", "built"))
    relay.start()
    return Kept(
        database,
        TableEventLogs(database, namespace),
        TableBuildLogs(database, namespace, built),
        changes,
        told,
        built,
        PostgresLeader(url, namespace),
        relay.close,
    )
