"""Table of artifacts, the latest version per name. Called by the pods' routes and the routes of artifacts."""

from collections.abc import Collection
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Row, func, select

from api.store.page import RowPage
from api.store.sql.database import Database
from api.store.sql.schema import artifacts, runs
from api.store.sql.upsert import insert
from crds.reasons import RunReason

_CREW_FAILURES = (
    RunReason.CREW_ERROR,
    RunReason.IMPORT_ERROR,
    RunReason.ENTRYPOINT_NOT_FOUND,
    RunReason.ARTIFACTS_LOST,
)
"""Failures that end a crew itself: its files are as it left them, not partial."""


@dataclass(frozen=True)
class ArtifactRow:
    """A stored file of a run. `sha256` (hex) serves as ETag; `blob` is its key in `Store.blobs`.

    `version` counts the stored versions of all files of the run, from 1.
    """

    run: str
    name: str
    version: int
    size: int
    sha256: str
    content_type: str
    partial: bool
    created_at: datetime
    blob: str


@dataclass(frozen=True)
class ArtifactTotals:
    """Number and total size of a run's artifacts."""

    count: int
    bytes: int


_COLUMNS = [artifacts.c[field.name] for field in fields(ArtifactRow)]


class Artifacts:
    """The artifacts of one namespace."""

    def __init__(self, database: Database, namespace: str) -> None:
        self._database = database
        self._namespace = namespace

    def _of(self, run: str) -> tuple[ColumnElement[bool], ColumnElement[bool]]:
        return artifacts.c.namespace == self._namespace, artifacts.c.run == run

    async def get(self, run: str, name: str) -> ArtifactRow | None:
        """Return one artifact of a run (object name), or None."""
        query = self._select(run).where(artifacts.c.name == name)
        async with self._database.read() as connection:
            row = (await connection.execute(query)).one_or_none()
        return _row(row) if row else None

    async def page(self, run: str, offset: int, limit: int) -> RowPage[ArtifactRow]:
        """Return a page of a run's artifacts, newest first; all are partial if the crew was cut short."""
        query = self._select(run).order_by(artifacts.c.version.desc()).offset(offset).limit(limit)
        async with self._database.read() as connection:
            count = select(func.count()).select_from(artifacts).where(*self._of(run))
            total = int((await connection.execute(count)).scalar_one())
            rows = (await connection.execute(query)).all()
        return RowPage(tuple(_row(row) for row in rows), total)

    async def totals(self, run: str, excluding: str | None = None) -> ArtifactTotals:
        """Return number and bytes of a run's artifacts, without the one named `excluding`."""
        query = select(func.count(), func.coalesce(func.sum(artifacts.c.size), 0)).where(*self._of(run))
        if excluding is not None:
            query = query.where(artifacts.c.name != excluding)
        async with self._database.read() as connection:
            count, size = (await connection.execute(query)).one()
        return ArtifactTotals(int(count), int(size))

    async def sizes(self, run: str, names: Collection[str]) -> dict[str, int]:
        """Return the bytes of those of a run's artifacts that have one of the names, by name."""
        if not names:
            return {}
        query = select(artifacts.c.name, artifacts.c.size).where(*self._of(run), artifacts.c.name.in_(names))
        async with self._database.read() as connection:
            return {name: int(size) for name, size in await connection.execute(query)}

    async def is_blob_used(self, run: str, blob: str) -> bool:
        """Return whether any artifact of a run uses this blob."""
        query = select(artifacts.c.name).where(*self._of(run), artifacts.c.blob == blob).limit(1)
        async with self._database.read() as connection:
            return (await connection.execute(query)).one_or_none() is not None

    async def put(
        self,
        run: str,
        name: str,
        size: int,
        sha256: str,
        content_type: str,
        partial: bool,
        blob: str,
        now: datetime,
    ) -> ArtifactRow:
        """Record a stored version as the latest. The same bytes again return the version recorded before."""
        key = {"namespace": self._namespace, "run": run, "name": name}
        async with self._database.write() as connection:
            previous = (
                await connection.execute(select(*_COLUMNS).where(*self._of(run), artifacts.c.name == name))
            ).one_or_none()
            if previous and previous.sha256 == sha256 and previous.partial == partial:
                return _row(previous)
            last = select(func.coalesce(func.max(artifacts.c.version), 0)).where(*self._of(run))
            values = {
                "version": int((await connection.execute(last)).scalar_one()) + 1,
                "size": size,
                "sha256": sha256,
                "content_type": content_type,
                "partial": partial,
                "created_at": now,
                "blob": blob,
            }
            await connection.execute(
                insert(connection, artifacts)
                .values(**key, **values)
                .on_conflict_do_update(index_elements=list(key), set_=values)
            )
        return ArtifactRow(run=run, name=name, **values)  # type: ignore[arg-type]

    def _select(self, run: str) -> Any:
        reason = func.coalesce(runs.c.error["reason"].as_string(), "")
        by_itself = (runs.c.status == "succeeded") | reason.in_([str(own) for own in _CREW_FAILURES])
        unfinished = runs.c.completed_at.is_not(None) & ~by_itself
        columns = [
            (artifacts.c.partial | func.coalesce(unfinished, False)).label("partial")
            if column.name == "partial"
            else column
            for column in _COLUMNS
        ]
        joined = (runs.c.namespace == artifacts.c.namespace) & (runs.c.name == artifacts.c.run)
        return select(*columns).select_from(artifacts.outerjoin(runs, joined)).where(*self._of(run))


def _row(row: Row[Any]) -> ArtifactRow:
    values = dict(row._mapping)
    return ArtifactRow(**{**values, "partial": bool(values["partial"])})
