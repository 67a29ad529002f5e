"""Storage backends for index and logs: a directory or PostgreSQL. Called by `Store.open`."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy.exc import SQLAlchemyError

from api.store.errors import StoreUnavailable
from api.store.logs.build_logs import BuildLogs, FileBuildLogs
from api.store.logs.event_logs import EventLogs, FileEventLogs
from api.store.logs.postgres_build_logs import PostgresBuildLogs
from api.store.logs.postgres_event_logs import PostgresEventLogs
from api.store.sql.database import Database
from api.store.sql.directory_lock import DirectoryLock
from api.store.sql.leader import Leader, SingleProcessLeader
from api.store.sql.migrate import migrate, migrate_postgres
from api.store.sql.notifier import Notifier
from api.store.sql.postgres.database import PostgresDatabase
from api.store.sql.postgres.leader import PostgresLeader
from api.store.sql.postgres.notifications import NotificationRelay
from api.store.sql.sqlite import SqliteDatabase

INDEX = "index.sqlite3"


@dataclass(frozen=True)
class Backend:
    """An open backend with one notifier each for objects (and API keys), runs, and build logs."""

    database: Database
    event_logs: EventLogs
    build_logs: BuildLogs
    object_notifier: Notifier
    run_notifier: Notifier
    build_notifier: Notifier
    leader: Leader
    release: Callable[[], Awaitable[None]]

    async def close(self) -> None:
        """Close everything; waiting readers return."""
        for notifier in (self.object_notifier, self.run_notifier, self.build_notifier):
            notifier.close()
        await self.database.close()
        await self.release()


async def open_directory_backend(directory: Path, namespace: str) -> Backend:
    """Open a SQLite file and segment files, for a single process. Raises StoreUnavailable."""
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

    objects, runs, builds = Notifier(), Notifier(), Notifier()
    return Backend(
        SqliteDatabase(directory / INDEX),
        FileEventLogs(directory / "events" / namespace),
        FileBuildLogs(directory / "buildlogs" / namespace, builds),
        objects,
        runs,
        builds,
        SingleProcessLeader(),
        release,
    )


async def open_postgres_backend(url: str, namespace: str) -> Backend:
    """Open tables in PostgreSQL, for any number of processes. Raises StoreUnavailable."""
    await migrate_postgres(url)
    database, relay = PostgresDatabase(url), NotificationRelay(url, namespace)
    objects, runs, builds = (relay.topic(name) for name in ("changes", "told", "built"))
    relay.start()
    return Backend(
        database,
        PostgresEventLogs(database, namespace),
        PostgresBuildLogs(database, namespace, builds),
        objects,
        runs,
        builds,
        PostgresLeader(url, namespace),
        relay.close,
    )
