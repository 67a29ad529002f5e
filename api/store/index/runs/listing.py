"""The two statements of a page of runs, cached per set of filters. Called by `index.runs`.

Building a statement takes longer than executing it: everything that changes between calls is a parameter.
"""

from functools import lru_cache
from typing import Any

from sqlalchemy import Select, bindparam, func, select

from api.store.sql.schema import run_counts, runs

FILTERS = ("project", "deployment", "status")


def active_filters(**values: Any) -> frozenset[str]:
    """Return the names of the filters that are set; `projects` limits what is visible."""
    return frozenset(name for name, value in values.items() if value is not None)


def has_index(filters: frozenset[str]) -> bool:
    """Return whether an index has the runs of these filters in order: a page reads no others."""
    return filters <= {"project", "status"} or filters == {"deployment"}


@lru_cache(maxsize=64)
def page(filters: frozenset[str], columns: tuple[str, ...], from_oldest: bool = False) -> Select[Any]:
    """Return the statement of a page, newest first. Parameters: namespace, offset, limit, and `filters`.

    `from_oldest`: the offset counts from the oldest run, which is faster for a distant page.
    """
    visible = (runs.c.namespace == bindparam("namespace"), runs.c.hidden.is_(False))
    orders = select(runs.c.ord).where(*visible)
    for name in FILTERS:
        if name in filters:
            orders = orders.where(runs.c[name] == bindparam(name))
    if "projects" in filters:
        orders = orders.where(runs.c.project.in_(bindparam("projects", expanding=True)))
    if "statuses" in filters:
        orders = orders.where(runs.c.status.in_(bindparam("statuses", expanding=True)))
    # An index alone selects the rows; only those of the page are read.
    order = runs.c.ord.asc() if from_oldest else runs.c.ord.desc()
    orders = orders.order_by(order).offset(bindparam("offset")).limit(bindparam("limit"))
    listed = [runs.c[name] for name in columns]
    return select(*listed).where(*visible, runs.c.ord.in_(orders)).order_by(runs.c.ord.desc())


@lru_cache(maxsize=64)
def total(filters: frozenset[str]) -> Select[Any]:
    """Return the statement that counts visible runs, from counters. Parameters: namespace and `filters`."""
    query = select(func.coalesce(func.sum(run_counts.c.count), 0)).where(
        run_counts.c.namespace == bindparam("namespace")
    )
    for name in FILTERS:
        if name in filters:
            query = query.where(run_counts.c[name] == bindparam(name))
    if "projects" in filters:
        query = query.where(run_counts.c.project.in_(bindparam("projects", expanding=True)))
    if "statuses" in filters:
        query = query.where(run_counts.c.status.in_(bindparam("statuses", expanding=True)))
    return query
