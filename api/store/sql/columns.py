"""Column types of the index: moments as microseconds, JSON, texts. Called by `api.store.sql.schema`."""

from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import JSON, BigInteger, BindParameter, Dialect, Integer, String, literal
from sqlalchemy.types import TypeDecorator

from api.store.sql.postgres import text as postgres_text

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


class Moment(TypeDecorator[datetime]):
    """A moment in UTC, kept as whole microseconds since 1970 so that every engine sorts it alike."""

    impl = BigInteger
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> int | None:
        """The number that is stored."""
        return None if value is None else (value - _EPOCH) // _MICROSECOND

    def process_result_value(self, value: Any, dialect: Dialect) -> datetime | None:
        """The moment that was stored."""
        return None if value is None else _EPOCH + int(value) * _MICROSECOND


def moment(value: datetime) -> BindParameter[datetime]:
    """A moment within an expression, where the engine's own idea of a time would be written otherwise."""
    return literal(value, Moment())


def json_column() -> JSON:
    """JSON whose None is the column's NULL."""
    return JSON(none_as_null=True)


class _PostgresText(TypeDecorator[str]):
    """A text of any characters, as PostgreSQL can keep it."""

    impl = String
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        """The text that is stored."""
        return None if value is None else postgres_text.keep(value)

    def process_result_value(self, value: Any, dialect: Dialect) -> str | None:
        """The text that was stored."""
        return None if value is None else postgres_text.give(value)


def text() -> String:
    """A text of any characters."""
    return String().with_variant(_PostgresText(), "postgresql")


def integer() -> Integer:
    """An integer of 64 bits: SQLite's own always has them."""
    return Integer().with_variant(BigInteger(), "postgresql")
