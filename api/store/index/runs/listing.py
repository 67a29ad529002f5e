"""The two statements behind a page of runs, made once for each set of filters. Called by `index.runs`.

To write a statement down takes longer than to execute it: what changes from call to call is a parameter.
"""

from functools import lru_cache
from typing import Any

from sqlalchemy import Select, bindparam, func, select

from api.store.sql.schema import run_counts, runs

FILTERS = ("project", "deployment", "status")


def filters(**given: Any) -> frozenset[str]:
    """Which of the filters are given; `projects` bounds what is seen."""
    return frozenset(name for name, value in given.items() if value is not None)


@lru_cache(maxsize=64)
def page(given: frozenset[str], columns: tuple[str, ...], from_oldest: bool = False) -> Select[Any]:
    """A page, newest first. Parameters: namespace, offset, limit, and those of `given`.

    `from_oldest`: the offset counts from the other end, which is the shorter way to a page far back.
    """
    shown = (runs.c.namespace == bindparam("namespace"), runs.c.hidden.is_(False))
    found = select(runs.c.ord).where(*shown)
    for name in FILTERS:
        if name in given:
            found = found.where(runs.c[name] == bindparam(name))
    if "projects" in given:
        found = found.where(runs.c.project.in_(bindparam("projects", expanding=True)))
    # Which rows is answered by an index alone; only those of the page are read.
    order = runs.c.ord.asc() if from_oldest else runs.c.ord.desc()
    found = found.order_by(order).offset(bindparam("offset")).limit(bindparam("limit"))
    listed = [runs.c[name] for name in columns]
    return select(*listed).where(*shown, runs.c.ord.in_(found)).order_by(runs.c.ord.desc())


@lru_cache(maxsize=64)
def total(given: frozenset[str]) -> Select[Any]:
    """How many shown runs match, by their counters. Parameters: namespace, and those of `given`."""
    query = select(func.coalesce(func.sum(run_counts.c.count), 0)).where(
        run_counts.c.namespace == bindparam("namespace")
    )
    for name in FILTERS:
        if name in given:
            query = query.where(run_counts.c[name] == bindparam(name))
    if "projects" in given:
        query = query.where(run_counts.c.project.in_(bindparam("projects", expanding=True)))
    return query
