"""Column types of the index: timestamps in microseconds, JSON, text. Called by `api.store.sql.schema`."""

from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import JSON, BigInteger, BindParameter, Dialect, Integer, String, literal
from sqlalchemy.types import TypeDecorator

from api.store.sql.postgres import text as postgres_text

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


class Moment(TypeDecorator[datetime]):
    """A UTC timestamp, stored as whole microseconds since 1970: every engine sorts it the same way."""

    impl = BigInteger
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> int | None:
        """Return the stored number."""
        return None if value is None else (value - _EPOCH) // _MICROSECOND

    def process_result_value(self, value: Any, dialect: Dialect) -> datetime | None:
        """Return the timestamp of a stored number."""
        return None if value is None else _EPOCH + int(value) * _MICROSECOND


def moment(value: datetime) -> BindParameter[datetime]:
    """Return a timestamp for an expression, in the stored form instead of the engine's own time type."""
    return literal(value, Moment())


def json_column() -> JSON:
    """Return a JSON type that stores None as NULL."""
    return JSON(none_as_null=True)


class _PostgresText(TypeDecorator[str]):
    """Text of any characters, in the form that PostgreSQL can store."""

    impl = String
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        """Return the stored text."""
        return None if value is None else postgres_text.encode(value)

    def process_result_value(self, value: Any, dialect: Dialect) -> str | None:
        """Return the original text."""
        return None if value is None else postgres_text.decode(value)


def text() -> String:
    """Return a type for text of any characters."""
    return String().with_variant(_PostgresText(), "postgresql")


def integer() -> Integer:
    """Return a 64-bit integer type: SQLite integers always are."""
    return Integer().with_variant(BigInteger(), "postgresql")
