"""Statements of a page of runs by label and by time, newest creation first. Called by `index.runs`.

No counters exist for these filters. A statement starts where few runs match: at a label, at the times, or at
the columns, whose counters are exact. It checks the other filters in an index for each run. Statements are
cached, since building one takes longer than executing it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any

from sqlalchemy import BigInteger, ColumnElement, Select, bindparam, func, literal_column, select

from api.store.sql.schema import run_labels, runs

MAX_TOTAL = 100
"""Runs that are counted; more only as far as the page needs it."""
SAMPLE_SIZE = 500
"""Newest runs of a label whose orders tell how many runs have it."""
LABEL = "label"
CREATED = "created"
COLUMNS = "columns"
"""Starts of a statement."""
_COLUMN_COST = 2
"""A run found by its columns takes as long as so many runs found by a label."""


@dataclass(frozen=True)
class RunSelection:
    """Labels (`key=value`, all of them) and times of creation: from the first, before the second."""

    labels: Sequence[str] = ()
    created_after: datetime | None = None
    created_before: datetime | None = None

    def __bool__(self) -> bool:
        return bool(self.labels or self.times)

    @property
    def times(self) -> dict[str, datetime]:
        """The times that are given, by name."""
        given = {"created_after": self.created_after, "created_before": self.created_before}
        return {name: moment for name, moment in given.items() if moment is not None}


@dataclass(frozen=True)
class Shape:
    """What a statement depends on besides its parameters."""

    filters: frozenset[str]
    start: str
    label_count: int


def choose(label_counts: Sequence[int], matching: int | None, total: int) -> str:
    """Return where to start.

    `label_counts`: about the runs of each label; `matching`: runs by the columns, None without such a filter;
    `total`: about all runs. A statement that starts at a label or a time reads the newest runs there until
    `MAX_TOTAL` match the columns.
    """
    start = LABEL if label_counts else CREATED
    if matching is None:
        return start
    reads = min(MAX_TOTAL * total // max(1, matching), *label_counts, total)
    return COLUMNS if matching * _COLUMN_COST < reads else start


def estimate(sampled: int, oldest_sampled: int, newest: int, total: int) -> int:
    """Return about the number of runs of a label: its newest `sampled` ones go down to an order."""
    if sampled < SAMPLE_SIZE:
        return sampled
    return sampled * total // max(1, newest - oldest_sampled + 1)


@lru_cache(maxsize=4)
def label_sample(times: frozenset[str]) -> Select[Any]:
    """Return the statement of number and least order of the newest runs of `label`, up to `SAMPLE_SIZE`."""
    newest = (
        select(run_labels.c.ord)
        .where(
            run_labels.c.namespace == bindparam("namespace"),
            run_labels.c.label == bindparam("label"),
            *_within(times, run_labels.c.created_at),
        )
        .order_by(run_labels.c.created_at.desc(), run_labels.c.ord.desc())
        .limit(SAMPLE_SIZE)
        .subquery()
    )
    return select(func.count(), func.coalesce(func.min(newest.c.ord), 0)).select_from(newest)


@lru_cache(maxsize=1)
def ends() -> Select[Any]:
    """Return the statement of the newest and the oldest order, 0 without runs."""
    newest, oldest = (
        select(runs.c.ord).where(*_visible(runs)).order_by(order).limit(1).scalar_subquery()
        for order in (runs.c.ord.desc(), runs.c.ord.asc())
    )
    return select(func.coalesce(newest, 0), func.coalesce(oldest, 0))


@lru_cache(maxsize=128)
def orders(shape: Shape) -> Select[int]:
    """Return the statement of the orders of matching runs, newest first.

    Parameters: `namespace`, `offset`, `limit`, those of the filters, and `label_0` onwards, the rarest first.
    """
    source: Any
    probed = range(shape.label_count)
    if shape.start == LABEL:
        source, probed = run_labels, range(1, shape.label_count)
        conditions = [
            source.c.namespace == bindparam("namespace"),
            source.c.label == bindparam("label_0"),
            *_matching(shape.filters, project=source.c.project),
        ]
        # A hidden run has no labels here.
        if rest := list(_matching(shape.filters, status=runs.c.status, deployment=runs.c.deployment)):
            conditions.append(_exists(*_visible(runs), runs.c.ord == source.c.ord, *rest))
    elif shape.start == COLUMNS:
        columns: dict[str, Any] = {name: runs.c[name] for name in ("project", "status", "deployment")}
        # The version is not in the index of times, which SQLite would read otherwise: it has the rest.
        candidates = select(runs.c.ord, runs.c.created_at).where(
            *_visible(runs), *_matching(shape.filters, **columns), runs.c.version >= 0
        )
        source = candidates.cte("candidates").prefix_with("MATERIALIZED")
        conditions = []
    else:
        source = runs.alias("source")
        # No index has an expression: only that of times remains.
        columns = {name: func.coalesce(source.c[name], "") for name in ("project", "status", "deployment")}
        conditions = [*_visible(source), *_matching(shape.filters, **columns)]
    return (
        select(source.c.ord)
        .where(
            *conditions,
            *_within(shape.filters, source.c.created_at),
            *(_has_label(number, source) for number in probed),
        )
        .order_by(source.c.created_at.desc(), source.c.ord.desc())
        .offset(bindparam("offset", type_=BigInteger))
        .limit(bindparam("limit", type_=BigInteger))
    )


@lru_cache(maxsize=4)
def rows(columns: tuple[str, ...]) -> Select[Any]:
    """Return the statement of the rows of `orders`, unordered: else SQLite follows the index of times."""
    return select(*(runs.c[name] for name in columns)).where(
        *_visible(runs), runs.c.ord.in_(bindparam("orders", expanding=True))
    )


def _has_label(number: int, source: Any) -> ColumnElement[bool]:
    table = run_labels.alias(f"probe_{number}")
    return _exists(
        table.c.namespace == bindparam("namespace"),
        table.c.label == bindparam(f"label_{number}"),
        table.c.created_at == source.c.created_at,
        table.c.ord == source.c.ord,
    )


def _exists(*conditions: ColumnElement[bool]) -> ColumnElement[bool]:
    """Return whether a row matches; no column of it is read, so an index is enough.

    A scalar subquery, since PostgreSQL turns EXISTS into a join that reads all runs before the first match.
    """
    row: Select[Any] = select(literal_column("1")).where(*conditions).limit(1)
    return row.scalar_subquery().is_not(None)


def _matching(filters: frozenset[str], **columns: Any) -> Iterator[ColumnElement[bool]]:
    """Yield the conditions of the filters on these columns."""
    several = {"project": "projects", "status": "statuses"}
    for name, column in columns.items():
        if name in filters:
            yield column == bindparam(name)
        if several.get(name) in filters:
            yield column.in_(bindparam(several[name], expanding=True))


def _within(filters: frozenset[str], column: Any) -> Iterator[ColumnElement[bool]]:
    if "created_after" in filters:
        yield column >= bindparam("created_after")
    if "created_before" in filters:
        yield column < bindparam("created_before")


def _visible(table: Any) -> tuple[ColumnElement[bool], ...]:
    return (table.c.namespace == bindparam("namespace"), table.c.hidden.is_(False))
