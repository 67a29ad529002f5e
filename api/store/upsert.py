"""INSERT with ON CONFLICT in the words of the engine at hand. Called by the nouns of `api.store.index`."""

from sqlalchemy import Table
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.ext.asyncio import AsyncConnection


def insert(connection: AsyncConnection, table: Table) -> sqlite.Insert | postgresql.Insert:
    """An insert that knows `on_conflict_do_update` and `on_conflict_do_nothing`."""
    return postgresql.insert(table) if connection.dialect.name == "postgresql" else sqlite.insert(table)
