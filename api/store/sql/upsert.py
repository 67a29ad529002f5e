"""INSERT with ON CONFLICT in the words of the engine at hand. Called by the nouns of `api.store.index`."""

from functools import lru_cache
from typing import Any

from sqlalchemy import Table, bindparam
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.ext.asyncio import AsyncConnection


def insert(connection: AsyncConnection, table: Table) -> sqlite.Insert | postgresql.Insert:
    """An insert that knows `on_conflict_do_update` and `on_conflict_do_nothing`."""
    return _insert(connection.dialect.name, table)


@lru_cache(maxsize=64)
def adding(engine: str, table: Table, column: str) -> Any:
    """A statement, made once: adds `step` to a column of the row of this key, which begins with `step`.

    Gives the column as it is then. Parameters: the key's columns, and `step`.
    """
    keys = [key.name for key in table.primary_key]
    first = _insert(engine, table).values(
        {**{key: bindparam(key) for key in keys}, column: bindparam("step")}
    )
    more = {column: table.c[column] + bindparam("step")}
    return first.on_conflict_do_update(index_elements=keys, set_=more).returning(table.c[column])


def _insert(engine: str, table: Table) -> sqlite.Insert | postgresql.Insert:
    return postgresql.insert(table) if engine == "postgresql" else sqlite.insert(table)
