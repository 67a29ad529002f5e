"""INSERT with ON CONFLICT in the dialect of the engine. Called by the tables of `api.store.index`."""

from functools import lru_cache
from typing import Any

from sqlalchemy import Table, bindparam
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.ext.asyncio import AsyncConnection


def insert(connection: AsyncConnection, table: Table) -> sqlite.Insert | postgresql.Insert:
    """Return an insert that supports `on_conflict_do_update` and `on_conflict_do_nothing`."""
    return _insert(connection.dialect.name, table)


@lru_cache(maxsize=64)
def increment_statement(engine: str, table: Table, column: str) -> Any:
    """Return a cached statement that adds `step` to a column of a row, or inserts the row with `step`.

    It returns the column's new value. Parameters: the key's columns, and `step`.
    """
    keys = [key.name for key in table.primary_key]
    first = _insert(engine, table).values(
        {**{key: bindparam(key) for key in keys}, column: bindparam("step")}
    )
    incremented = {column: table.c[column] + bindparam("step")}
    return first.on_conflict_do_update(index_elements=keys, set_=incremented).returning(table.c[column])


def _insert(engine: str, table: Table) -> sqlite.Insert | postgresql.Insert:
    return postgresql.insert(table) if engine == "postgresql" else sqlite.insert(table)
