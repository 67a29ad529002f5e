"""Brings the index to the present schema. Called by `Store.open`, before any connection of ours."""

from pathlib import Path
from typing import Any

from alembic import command
from alembic.config import Config
from sqlalchemy import BigInteger, Connection, create_engine, event, func, literal, select
from sqlalchemy.pool import NullPool

from api.store.sql.postgres.engine import dispose, engine, lock_number, translated

SCRIPTS = Path(__file__).parent / "migrations"
_LOCK = lock_number("migrations")


def migrate(path: Path, revision: str = "head") -> None:
    """Runs the migrations that the SQLite file lacks, in one transaction. Blocks; runs in a thread."""
    made = create_engine(f"sqlite:///{path}", poolclass=NullPool)

    # The driver's own transactions begin with the first change of a row, and so leave changes of the schema
    # outside: a process killed halfway would leave tables that the next start cannot make again.
    @event.listens_for(made, "connect")
    def plain(connection: Any, _record: Any) -> None:
        connection.isolation_level = None

    @event.listens_for(made, "begin")
    def begin(connection: Connection) -> None:
        connection.exec_driver_sql("BEGIN IMMEDIATE")

    try:
        with made.begin() as connection:
            _upgrade(connection, revision)
    finally:
        made.dispose()


async def migrate_postgres(url: str, revision: str = "head") -> None:
    """Runs the migrations that the PostgreSQL database lacks, in one transaction.

    Replicas wait for one another. Raises StoreUnavailable.
    """
    made = engine(url, 1, bounded=False)
    try:
        async with translated(None), made.begin() as connection:
            await connection.execute(select(func.pg_advisory_xact_lock(literal(_LOCK, BigInteger))))
            await connection.run_sync(_upgrade, revision)
    finally:
        await dispose(made)


def _upgrade(connection: Connection, revision: str) -> None:
    settings = Config()
    settings.set_main_option("script_location", str(SCRIPTS).replace("%", "%%"))
    settings.attributes["connection"] = connection
    command.upgrade(settings, revision)
