"""Column types of the index: moments as microseconds, JSON as text. Called by `api.store.schema`."""

from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import JSON, BigInteger, BindParameter, Dialect, literal
from sqlalchemy.types import TypeDecorator

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
