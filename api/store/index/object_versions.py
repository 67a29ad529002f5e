"""Which version of its object a row knows. Called by the projector where the cluster went back in time."""

from sqlalchemy import Table, update

from api.store.sql.database import Database


async def forget(database: Database, namespace: str, table: Table) -> None:
    """Any version of an object is news from now on. Raises StoreUnavailable."""
    async with database.write() as connection:
        await connection.execute(update(table).where(table.c.namespace == namespace).values(version=0))
