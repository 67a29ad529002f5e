"""Recorded resourceVersions of rows. Called by the projector after a restore of etcd to an older state."""

from sqlalchemy import Table, update

from api.store.sql.database import Database


async def reset_versions(database: Database, namespace: str, table: Table) -> None:
    """Set the version of all rows to 0: any version of an object is newer. Raises StoreUnavailable."""
    async with database.write() as connection:
        await connection.execute(update(table).where(table.c.namespace == namespace).values(version=0))
