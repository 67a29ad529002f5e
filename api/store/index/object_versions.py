"""Recorded resourceVersions of rows. Called by the tables of objects, and by the projector."""

from sqlalchemy import ColumnElement, Table, select, update

from api.store.sql.database import Database

ROWS_PER_TRANSACTION = 500
"""Rows reset per transaction: other writers wait no longer than that."""


async def read_versions(
    database: Database, namespace: str, table: Table, place: str | None, *conditions: ColumnElement[bool]
) -> dict[str, tuple[str, int]]:
    """Return uid and last seen resourceVersion, by name, of the rows of the namespace `place`.

    None is the installation's own one. Raises StoreUnavailable.
    """
    query = select(table.c.name, table.c.uid, table.c.version).where(
        table.c.namespace == namespace, table.c.object_namespace.is_not_distinct_from(place), *conditions
    )
    async with database.read() as connection:
        return {row.name: (row.uid, row.version) for row in await connection.execute(query)}


async def reset_versions(database: Database, namespace: str, table: Table) -> None:
    """Set the version of all rows to 0, after a restore of etcd to an older state.

    Any version of an object is newer then. Raises StoreUnavailable.
    """
    last = ""
    while True:
        batch = (
            select(table.c.name)
            .where(table.c.namespace == namespace, table.c.name > last)
            .order_by(table.c.name)
            .limit(ROWS_PER_TRANSACTION)
        )
        async with database.write() as connection:
            names = (await connection.execute(batch)).scalars().all()
            if not names:
                return
            last = names[-1]
            here = (table.c.namespace == namespace, table.c.name.in_(names), table.c.version > 0)
            await connection.execute(update(table).where(*here).values(version=0))
