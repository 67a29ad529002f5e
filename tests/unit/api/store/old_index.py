"""An index with the schema of an older release."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from sqlalchemy.ext.asyncio import AsyncConnection, create_async_engine

from api.store.backend import INDEX
from api.store.sql.migrate import migrate, migrate_postgres


@asynccontextmanager
async def old_index(
    directory: Path, database_url: str | None, revision: str
) -> AsyncIterator[AsyncConnection]:
    """Create the index of a revision in an empty database; yield a transaction that fills it."""
    if database_url is None:
        migrate(directory / INDEX, revision)
    else:
        await migrate_postgres(database_url, revision)
    engine = create_async_engine(database_url or f"sqlite+aiosqlite:///{directory / INDEX}")
    async with engine.begin() as connection:
        yield connection
    await engine.dispose()
