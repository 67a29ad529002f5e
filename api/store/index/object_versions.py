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

    Any version of an object is newer then. The newest row is the last: as long as it is left, the next list
    shows again that etcd was restored, and the caller repeats an interrupted reset. Raises StoreUnavailable.
    """
    here = table.c.namespace == namespace
    query = select(table.c.name).where(here).order_by(table.c.version.desc()).limit(1)
    async with database.read() as connection:
        newest = (await connection.execute(query)).scalar_one_or_none()
    last = ""
    while True:
        batch = (
            select(table.c.name)
            .where(here, table.c.name > last, table.c.name != newest)
            .order_by(table.c.name)
            .limit(ROWS_PER_TRANSACTION)
        )
        async with database.write() as connection:
            names = (await connection.execute(batch)).scalars().all()
            reset = table.c.name.in_(names or [newest]) & (table.c.version > 0)
            await connection.execute(update(table).where(here, reset).values(version=0))
        if not names:
            return
        last = names[-1]
