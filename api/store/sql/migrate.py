"""Schema migrations of the index. Called by `Store.open`, before it opens any other connection."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from alembic import command
from alembic.config import Config
from sqlalchemy import BigInteger, Connection, create_engine, event, func, literal, select
from sqlalchemy.pool import NullPool

from api.store.sql.postgres.engine import dispose, lock_number, make_engine, translate_errors

SCRIPTS = Path(__file__).parent / "migrations"
_LOCK = lock_number("migrations")


def migrate(path: Path, revision: str = "head") -> None:
    """Run the missing migrations of a SQLite file, in one transaction. Blocks; runs in a thread.

    Sets the write-ahead log before, which the file keeps: two connections that set it at once wait for each
    other until one gives up.
    """
    with closing(sqlite3.connect(path)) as first:
        first.execute("PRAGMA journal_mode = WAL")
    sqlite_engine = create_engine(f"sqlite:///{path}", poolclass=NullPool)

    # The driver's own transactions begin with the first change of a row and exclude schema changes: a process
    # killed halfway would leave tables that the next start cannot create again.
    @event.listens_for(sqlite_engine, "connect")
    def disable_driver_transactions(connection: Any, _record: Any) -> None:
        connection.isolation_level = None

    @event.listens_for(sqlite_engine, "begin")
    def begin(connection: Connection) -> None:
        connection.exec_driver_sql("BEGIN IMMEDIATE")

    try:
        with sqlite_engine.begin() as connection:
            _upgrade(connection, revision)
    finally:
        sqlite_engine.dispose()


async def migrate_postgres(url: str, revision: str = "head") -> None:
    """Run the missing migrations of a PostgreSQL database, in one transaction.

    Replicas wait for each other. Raises StoreUnavailable.
    """
    postgres_engine = make_engine(url, 1, bounded=False)
    try:
        async with translate_errors(None), postgres_engine.begin() as connection:
            await connection.execute(select(func.pg_advisory_xact_lock(literal(_LOCK, BigInteger))))
            await connection.run_sync(_upgrade, revision)
    finally:
        await dispose(postgres_engine)


def _upgrade(connection: Connection, revision: str) -> None:
    settings = Config()
    settings.set_main_option("script_location", str(SCRIPTS).replace("%", "%%"))
    settings.attributes["connection"] = connection
    command.upgrade(settings, revision)
