"""Runs as rows: every run ever. Called by accept and the routes of runs; `api.store.index.runs.run_writer` changes them."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any

from sqlalchemy import Row, bindparam, delete, select, update

from api.store.index.idempotency import Idempotency, remember
from api.store.index.runs import counts, listing
from api.store.index.runs.counts import Place
from api.store.page import Page
from api.store.sql.database import Database, next_ord
from api.store.sql.schema import idempotency as keys
from api.store.sql.schema import projects as projects_table
from api.store.sql.schema import runs
from crds import names, ulid

LIVE = ("pending", "running")
ENDED = ("succeeded", "failed", "canceled")
NEAR = 2000
"""Rows that are skipped in less than a millisecond."""


@dataclass(frozen=True)
class RunRow:
    """A run as lists show it, by its object name (`run-…`). `status` is lower-case, as /v1 has it."""

    name: str
    ord: int
    project: str
    deployment: str | None
    status: str
    created_at: datetime
    started_at: datetime | None
    completed_at: datetime | None
    duration_ms: int | None

    @property
    def ended(self) -> bool:
        """Whether it has reached its end."""
        return self.status in ENDED


@dataclass(frozen=True)
class RunDetail(RunRow):
    """A run as a single object: with what it was given and what came of it."""

    uid: str | None
    input: Mapping[str, Any] | None
    """None where the object names an input that was never given here."""
    entrypoint: str | None
    timeout: str | None
    cancel: bool
    output: Any
    error: Mapping[str, Any] | None
    waiting: Mapping[str, Any] | None
    """Why it is pending: the condition Admitted or Succeeded, `{reason, message}`."""


@dataclass(frozen=True)
class RunRequest:
    """A checked request: project and deployment by object name, both known to the index."""

    project: str
    deployment: str
    input: Mapping[str, Any]
    entrypoint: str | None = None
    timeout: str | None = None


_LISTED = tuple(field.name for field in fields(RunRow))
_WHOLE = [runs.c[field.name] for field in fields(RunDetail)]
_ONE = select(*_WHOLE).where(
    runs.c.namespace == bindparam("namespace"), runs.c.name == bindparam("name"), runs.c.hidden.is_(False)
)


def new_name() -> str:
    """An object name that no run has, greater than those before."""
    return names.RUN_PREFIX + ulid.new()


_NEW = runs.insert().values(
    {
        **{
            name: bindparam(name)
            for name in (
                "namespace",
                "name",
                "ord",
                "project",
                "deployment",
                "created_at",
                "input",
                "entrypoint",
                "timeout",
            )
        },
        "project_uid": select(projects_table.c.uid)
        .where(
            # Names of their own: PostgreSQL gives a parameter one type, and an insert's have another.
            projects_table.c.namespace == bindparam("of_namespace"),
            projects_table.c.name == bindparam("of_project"),
        )
        .scalar_subquery(),
        "version": 0,
        "status": "pending",
        "hidden": False,
        "withdrawn": False,
        "present": True,
        "cancel": False,
    }
)


def _detail(row: Row[Any]) -> RunDetail:
    return RunDetail(**row._mapping)


class Runs:
    """The table of runs of one namespace."""

    def __init__(self, database: Database, namespace: str) -> None:
        self._database = database
        self._namespace = namespace

    async def get(self, name: str) -> RunDetail | None:
        """One run by object name, or None."""
        here = {"namespace": self._namespace, "name": name}
        async with self._database.brief_read() as connection:
            row = (await connection.execute(_ONE, here)).one_or_none()
        return _detail(row) if row else None

    async def page(
        self,
        offset: int,
        limit: int,
        project: str | None = None,
        deployment: str | None = None,
        status: str | None = None,
        projects: frozenset[str] | None = None,
    ) -> Page[RunRow]:
        """A page, newest first. `deployment` is an object name; `projects` bounds what a key may see."""
        asked: dict[str, Any] = {
            "project": project,
            "deployment": deployment,
            "status": status,
            "projects": None if projects is None else sorted(projects),
        }
        given = listing.filters(**asked)
        values = {"namespace": self._namespace, **{name: asked[name] for name in given}}
        near = offset < NEAR
        async with self._database.brief_read() if near else self._database.read() as connection:
            total = int((await connection.execute(listing.total(given), values)).scalar_one())
            count = max(0, min(limit, total - offset))
            behind = total - offset - count
            query = listing.page(given, _LISTED, from_oldest=behind < offset)
            values |= {"offset": min(offset, behind), "limit": count}
            rows = (await connection.execute(query, values)).all() if count else []
        return Page(tuple(RunRow(**row._mapping) for row in rows), total)

    async def accept(
        self, request: RunRequest, now: datetime, idempotency: Idempotency | None, name: str | None = None
    ) -> tuple[str, bool]:
        """Makes the row of a new run, without a uid yet. Gives its name and whether it is new.

        The same idempotency gives the name it made before. Raises Taken for another body. `name` is one of
        `new_name`.
        """
        name = name or new_name()
        async with self._database.brief_write() as connection:
            if idempotency is not None:
                first = await remember(connection, self._namespace, idempotency, name, now)
                if first != name:
                    return first, False
            values = {
                "namespace": self._namespace,
                "of_namespace": self._namespace,
                "of_project": request.project,
                "name": name,
                "ord": await next_ord(connection, self._namespace),
                "project": request.project,
                "deployment": request.deployment,
                "created_at": now,
                "input": dict(request.input),
                "entrypoint": request.entrypoint,
                "timeout": request.timeout,
            }
            await connection.execute(_NEW, values)
            place = Place(request.project, request.deployment, "pending")
            await counts.move(connection, self._namespace, None, place)
        return name, True

    async def withdraw(self, name: str, now: datetime, gone: bool) -> bool:
        """Takes an accepted run back: nobody sees it and no pod is given it. False if it has an object.

        `gone`: there is surely no object; otherwise `unsettled` names it until `settle`.
        """
        async with self._database.write() as connection:
            changed = update(runs).where(
                runs.c.namespace == self._namespace,
                runs.c.name == name,
                runs.c.uid.is_(None),
                runs.c.hidden.is_(False),
            )
            row = (
                await connection.execute(
                    changed.values(
                        withdrawn=True,
                        hidden=True,
                        present=not gone,
                        status="canceled",
                        completed_at=now,
                        sealed=True,
                    ).returning(runs.c.project, runs.c.deployment)
                )
            ).one_or_none()
            if row:
                place = Place(row.project, row.deployment, "pending")
                await counts.move(connection, self._namespace, place, None)
                # The same key may be tried again: what it made does not count.
                await connection.execute(
                    delete(keys).where(keys.c.namespace == self._namespace, keys.c.name == name)
                )
        return row is not None

    async def unsettled(
        self, accepted_before: datetime
    ) -> tuple[list[tuple[str, datetime]], list[RunDetail]]:
        """What was accepted earlier and is half done: withdrawn runs that may have an object (name and time
        of acceptance), and rows whose object is still to be made.
        """
        query = (
            select(*_WHOLE, runs.c.withdrawn)
            .where(
                runs.c.namespace == self._namespace,
                runs.c.present.is_(True),
                (runs.c.withdrawn.is_(True)) | (runs.c.uid.is_(None) & runs.c.hidden.is_(False)),
                runs.c.created_at < accepted_before,
            )
            .limit(1000)
        )
        async with self._database.read() as connection:
            rows = [dict(row._mapping) for row in await connection.execute(query)]
        rows.sort(key=lambda row: int(row["ord"]))
        withdrawn = [(row["name"], row["created_at"]) for row in rows if row["withdrawn"]]
        kept = [row for row in rows if not row.pop("withdrawn")]
        return withdrawn, [RunDetail(**row) for row in kept]

    async def prunable(
        self, ended_before: datetime, limit: int, project: str | None = None, but: Collection[str] = ()
    ) -> tuple[tuple[str, str, int], ...]:
        """Name, uid and last seen resourceVersion of ended runs whose object is still there, oldest first.

        Of one project, or of all `but` some.
        """
        query = (
            select(runs.c.name, runs.c.uid, runs.c.version)
            .where(
                runs.c.namespace == self._namespace,
                runs.c.present.is_(True),
                runs.c.status.in_(ENDED),
                runs.c.terminal.is_not(None),
                runs.c.uid.is_not(None),
                runs.c.completed_at < ended_before,
            )
            .order_by(runs.c.completed_at)
            .limit(limit)
        )
        if project is not None:
            query = query.where(runs.c.project == project)
        if but:
            query = query.where(runs.c.project.not_in(but))
        async with self._database.read() as connection:
            return tuple((row.name, row.uid, row.version) for row in await connection.execute(query))

    async def settle(self, name: str) -> None:
        """There is no object of a withdrawn run."""
        async with self._database.write() as connection:
            await connection.execute(
                update(runs)
                .where(runs.c.namespace == self._namespace, runs.c.name == name)
                .values(present=False)
            )
