"""How connections to PostgreSQL are made and bounded, and what their failures mean.

Called by `api.store.sql.postgres.database` and what else uses that database.
"""

import asyncio
import hashlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import asyncpg
from sqlalchemy import URL, event, exc, make_url
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

from api.store.errors import StoreUnavailable
from api.store.sql.postgres import text as postgres_text
from api.store.sql.postgres.tls import parted

CONNECT_SECONDS = 2.0
COMMAND_SECONDS = 2.5
"""What the client waits for one answer, should the network swallow it; the server gives up sooner."""
POOL_SECONDS = 2.0
_BOUNDS = {
    "statement_timeout": "2000",
    "lock_timeout": "1500",
    # Whoever is stopped within a transaction must not hold the lock of all writers for long.
    "idle_in_transaction_session_timeout": "5000",
    "tcp_user_timeout": "5000",
}
_DURABLE = {"synchronous_commit": "on", "application_name": "crewyard-api", "jit": "off"}
_NAMES = ("postgresql", "postgres", "postgresql+asyncpg")
# Classes of SQLSTATE: connection, password, repetition, resources, not ready, operator, system, read-only.
_LATER = ("08", "25", "28", "3D", "40", "53", "55", "57", "58", "XX")


def address(text: str) -> URL:
    """A database's URL, for asyncpg. Raises ValueError without the password in its text."""
    try:
        url = make_url(text)
    except exc.ArgumentError as error:
        raise ValueError("is no URL") from error
    if url.drivername not in _NAMES or not url.database:
        raise ValueError("must be postgresql+asyncpg://user:password@host:5432/database")
    parted(url)
    return url.set(drivername="postgresql+asyncpg")


def direct(text: str) -> tuple[str, dict[str, Any]]:
    """The same for asyncpg itself: the address with its password, and the arguments that go with it."""
    url, tls = parted(address(text))
    return url.set(drivername="postgresql").render_as_string(hide_password=False), tls


def engine(url: str, size: int, bounded: bool = True) -> AsyncEngine:
    """A pool of at most `size` connections; not `bounded`: statements may take their time."""
    settings = {**_DURABLE, **(_BOUNDS if bounded else {})}
    place, tls = parted(address(url))
    made = create_async_engine(
        place,
        pool_size=size,
        max_overflow=0,
        pool_timeout=POOL_SECONDS,
        hide_parameters=True,
        json_serializer=postgres_text.dump,
        json_deserializer=postgres_text.load,
        connect_args={
            "timeout": CONNECT_SECONDS,
            "command_timeout": COMMAND_SECONDS if bounded else None,
            "server_settings": settings,
            **tls,
        },
    )

    @event.listens_for(made.sync_engine, "checkout")
    def look(connection: Any, _record: Any, _proxy: Any) -> None:
        # One that the server has ended meanwhile is known without asking.
        if connection.driver_connection.is_closed():
            raise exc.DisconnectionError

    return made


async def dispose(made: AsyncEngine) -> None:
    """Closes a pool's connections: politely, but not for long."""
    with suppress(TimeoutError):
        async with asyncio.timeout(CONNECT_SECONDS):
            await made.dispose()


def lock_number(name: str) -> int:
    """The number of an advisory lock: PostgreSQL knows them by 64 bits."""
    digest = hashlib.sha256(f"crewyard/{name}".encode(errors="surrogatepass")).digest()
    return int.from_bytes(digest[:8], "big", signed=True)


@asynccontextmanager
async def translated(seconds: float | None) -> AsyncIterator[None]:
    """Bounds what is within. Failures become StoreUnavailable; ValueError for what cannot be stored."""
    try:
        async with asyncio.timeout(seconds):
            yield
    except (exc.TimeoutError, exc.InterfaceError, asyncpg.InterfaceError, OSError) as error:
        raise StoreUnavailable(f"the index cannot answer: {_said(error)}") from error
    except (exc.DBAPIError, asyncpg.PostgresError) as error:
        state = _state(error)
        if state is None or state[:2] in _LATER:
            raise StoreUnavailable(f"the index cannot answer: {_said(error)}") from error
        if state[:2] == "22":
            raise ValueError(f"the index cannot keep this: {_said(error)}") from error
        raise


def _state(error: Exception) -> str | None:
    cause = error.orig if isinstance(error, exc.DBAPIError) else error
    found = getattr(cause, "sqlstate", None)
    return str(found) if found else None


def _said(error: Exception) -> str:
    """Its text without the statement and its values."""
    cause = error.orig if isinstance(error, exc.DBAPIError) and error.orig else error
    return f"{cause.__class__.__name__}: {cause}"
