"""Connections to PostgreSQL: URLs, pools, timeouts and error translation.

Called by `api.store.sql.postgres.database` and by all other users of that database.
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
from api.store.sql.postgres.tls import split_tls

CONNECT_SECONDS = 2.0
COMMAND_TIMEOUT_SECONDS = 2.5
"""Client-side limit of one statement, for a network that drops the response; the server's is shorter."""
POOL_SECONDS = 2.0
_TIMEOUT_SETTINGS = {
    "statement_timeout": "2000",
    "lock_timeout": "1500",
    # A client that stops within a transaction must not hold the write lock for long.
    "idle_in_transaction_session_timeout": "5000",
    "tcp_user_timeout": "5000",
}
_DURABLE = {"synchronous_commit": "on", "application_name": "crewyard-api", "jit": "off"}
_NAMES = ("postgresql", "postgres", "postgresql+asyncpg")
# SQLSTATE classes: connection, password, serialization, resources, not ready, operator, system, read-only.
_TRANSIENT_CLASSES = ("08", "25", "28", "3D", "40", "53", "55", "57", "58", "XX")


def parse_url(text: str) -> URL:
    """Return a database's URL, for asyncpg. Raises ValueError, whose text has no password."""
    try:
        url = make_url(text)
    except exc.ArgumentError as error:
        raise ValueError("is not a URL") from error
    if url.drivername not in _NAMES or not url.database:
        raise ValueError("must be postgresql+asyncpg://user:password@host:5432/database")
    split_tls(url)
    return url.set(drivername="postgresql+asyncpg")


def asyncpg_arguments(text: str) -> tuple[str, dict[str, Any]]:
    """Return the arguments of `asyncpg.connect`: the URL with its password, and the TLS options."""
    url, tls = split_tls(parse_url(text))
    return url.set(drivername="postgresql").render_as_string(hide_password=False), tls


def make_engine(url: str, size: int, bounded: bool = True) -> AsyncEngine:
    """Return a pool of at most `size` connections; without `bounded` statements have no time limit."""
    settings = {**_DURABLE, **(_TIMEOUT_SETTINGS if bounded else {})}
    plain_url, tls = split_tls(parse_url(url))
    engine = create_async_engine(
        plain_url,
        pool_size=size,
        max_overflow=0,
        pool_timeout=POOL_SECONDS,
        hide_parameters=True,
        json_serializer=postgres_text.dump,
        json_deserializer=postgres_text.load,
        connect_args={
            "timeout": CONNECT_SECONDS,
            "command_timeout": COMMAND_TIMEOUT_SECONDS if bounded else None,
            "server_settings": settings,
            **tls,
        },
    )

    @event.listens_for(engine.sync_engine, "checkout")
    def check_open(connection: Any, _record: Any, _proxy: Any) -> None:
        # Detects a connection that the server has closed, without a query.
        if connection.driver_connection.is_closed():
            raise exc.DisconnectionError

    return engine


async def dispose(engine: AsyncEngine) -> None:
    """Close a pool's connections gracefully, within CONNECT_SECONDS."""
    with suppress(TimeoutError):
        async with asyncio.timeout(CONNECT_SECONDS):
            await engine.dispose()


def lock_number(name: str) -> int:
    """Return the 64-bit number of an advisory lock by its name."""
    digest = hashlib.sha256(f"crewyard/{name}".encode(errors="surrogatepass")).digest()
    return int.from_bytes(digest[:8], "big", signed=True)


@asynccontextmanager
async def translate_errors(seconds: float | None) -> AsyncIterator[None]:
    """Limit the block to `seconds`; turn failures into StoreUnavailable, invalid data into ValueError."""
    try:
        async with asyncio.timeout(seconds):
            yield
    except (exc.TimeoutError, exc.InterfaceError, asyncpg.InterfaceError, OSError) as error:
        raise StoreUnavailable(f"the index cannot answer: {_error_text(error)}") from error
    except (exc.DBAPIError, asyncpg.PostgresError) as error:
        state = _sqlstate(error)
        if state is None or state[:2] in _TRANSIENT_CLASSES:
            raise StoreUnavailable(f"the index cannot answer: {_error_text(error)}") from error
        if state[:2] == "22":
            raise ValueError(f"the index cannot store this: {_error_text(error)}") from error
        raise


def _sqlstate(error: Exception) -> str | None:
    cause = error.orig if isinstance(error, exc.DBAPIError) else error
    state = getattr(cause, "sqlstate", None)
    return str(state) if state else None


def _error_text(error: Exception) -> str:
    """Return the error's text without the statement and its values."""
    cause = error.orig if isinstance(error, exc.DBAPIError) and error.orig else error
    return f"{cause.__class__.__name__}: {cause}"
