"""Journals as rows in PostgreSQL, numbered from 1 without gaps. Called by `api.store.logs.postgres_event_logs` and
`api.store.logs.postgres_build_logs`.

A journal's own row holds its last number and what its kind needs to know of it
(`state`). Appending changes that row, and so waits for whoever does the same, and
for its commit; a sealed journal takes nothing more, whatever lock was lost.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from sqlalchemy import ColumnElement, Text, and_, cast, delete, func, select
from sqlalchemy.ext.asyncio import AsyncConnection

from api.store.errors import StoreUnavailable
from api.store.logs.journal import READ_BYTES, Record
from api.store.sql.schema import journal_records, journals
from api.store.sql.upsert import insert


@dataclass(frozen=True)
class Head:
    """A journal's own row."""

    last: int = 0
    state: Mapping[str, int] = field(default_factory=dict)
    sealed: bool = False


class Tables:
    """The journals of one kind and namespace. Every call is within the caller's transaction."""

    def __init__(self, namespace: str, kind: str) -> None:
        self._key = {"namespace": namespace, "kind": kind}

    async def head(self, connection: AsyncConnection, name: str) -> Head:
        """What is known of a journal; of one that nobody wrote to, an empty one."""
        query = select(journals.c.last, journals.c.state, journals.c.sealed).where(self._of(name))
        row = (await connection.execute(query)).one_or_none()
        return Head(**row._mapping) if row else Head()

    async def append(
        self, connection: AsyncConnection, name: str, records: Sequence[Record], state: Mapping[str, int]
    ) -> None:
        """Appends records behind the last. Raises StoreUnavailable where the journal is sealed."""
        first = insert(connection, journals).values(
            **self._key, name=name, last=len(records), state=dict(state), sealed=False
        )
        changed = first.on_conflict_do_update(
            index_elements=["namespace", "kind", "name"],
            set_={"last": journals.c.last + len(records), "state": dict(state)},
            where=journals.c.sealed.is_(False),
        ).returning(journals.c.last)
        last = (await connection.execute(changed)).scalar_one_or_none()
        if last is None:
            raise StoreUnavailable(f"the log of {name} has been ended meanwhile")
        if records:
            begin = last - len(records) + 1
            await connection.execute(
                journal_records.insert(),
                [
                    {**self._key, "name": name, "number": number, "record": _line(record)}
                    for number, record in enumerate(records, begin)
                ],
            )

    async def seal(self, connection: AsyncConnection, name: str) -> int:
        """Ends a journal; gives its last number."""
        first = insert(connection, journals).values(**self._key, name=name, last=0, state={}, sealed=True)
        changed = first.on_conflict_do_update(
            index_elements=["namespace", "kind", "name"], set_={"sealed": True}
        ).returning(journals.c.last)
        return int((await connection.execute(changed)).scalar_one())

    async def read(self, connection: AsyncConnection, name: str, after: int, limit: int) -> list[Record]:
        """Up to `limit` records with numbers above `after`, in order; fewer where they are large."""
        return [json.loads(text) for text in await self.texts(connection, name, after, limit)]

    async def texts(self, connection: AsyncConnection, name: str, after: int, limit: int) -> Sequence[str]:
        """As `read`, as they are stored; none where the next one is gone: what follows has not its number."""
        if limit <= 0:
            return []
        sizes = (
            select(
                journal_records.c.record,
                journal_records.c.number,
                func.sum(func.length(journal_records.c.record))
                .over(order_by=journal_records.c.number, rows=(None, -1))
                .label("before"),
            )
            .where(self._records(name), journal_records.c.number.between(after + 1, after + limit))
            .subquery()
        )
        query = (
            select(sizes.c.number, sizes.c.record)
            .where(func.coalesce(sizes.c.before, 0) < READ_BYTES)
            .order_by(sizes.c.number)
        )
        rows = (await connection.execute(query)).all()
        return [text for _, text in rows] if rows and rows[0][0] == after + 1 else []

    async def marked(
        self, connection: AsyncConnection, name: str, marker: str, after: int, limit: int
    ) -> list[tuple[int, Record]]:
        """Number and record of up to `limit` records above `after` whose text holds `marker`, in order."""
        query = (
            select(journal_records.c.number, journal_records.c.record)
            .where(
                self._records(name),
                journal_records.c.number > after,
                func.strpos(journal_records.c.record, cast(marker, Text)) > 0,
            )
            .order_by(journal_records.c.number)
            .limit(limit)
        )
        return [(number, json.loads(text)) for number, text in await connection.execute(query)]

    async def shrink(self, connection: AsyncConnection, name: str, amount: int) -> bool:
        """Deletes up to `amount` records, the first ones; gives whether none is left. Its own row stays."""
        here = self._records(name)
        first = (
            await connection.execute(select(func.min(journal_records.c.number)).where(here))
        ).scalar_one()
        if first is None:
            return True
        gone = journal_records.c.number < first + amount
        found = await connection.execute(delete(journal_records).where(here, gone))
        return found.rowcount < amount

    async def remove(self, connection: AsyncConnection, name: str) -> None:
        """Deletes a journal."""
        await connection.execute(delete(journals).where(self._of(name)))
        await connection.execute(delete(journal_records).where(self._records(name)))

    def _of(self, name: str) -> ColumnElement[bool]:
        return and_(*(journals.c[key] == value for key, value in {**self._key, "name": name}.items()))

    def _records(self, name: str) -> ColumnElement[bool]:
        return and_(*(journal_records.c[key] == value for key, value in {**self._key, "name": name}.items()))


def _line(record: Record) -> str:
    return json.dumps(record, separators=(",", ":"))
