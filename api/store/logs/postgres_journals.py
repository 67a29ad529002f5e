"""Journals as rows in PostgreSQL, numbered from 1 without gaps.

A journal's own row holds its last number and the data of its kind (`state`). Appending updates that row: it
waits for a concurrent append and its commit; a sealed journal accepts nothing more, any lock was lost.
Called by `api.store.logs.postgres_event_logs` and `api.store.logs.postgres_build_logs`.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from sqlalchemy import ColumnElement, Text, and_, cast, delete, func, select
from sqlalchemy.ext.asyncio import AsyncConnection

from api.store.errors import StoreUnavailable
from api.store.logs.journal import MAX_READ_BYTES, Record
from api.store.sql.schema import journal_records, journals
from api.store.sql.upsert import insert


@dataclass(frozen=True)
class JournalHead:
    """A journal's own row."""

    last: int = 0
    state: Mapping[str, int] = field(default_factory=dict)
    sealed: bool = False


class JournalTables:
    """The journals of one kind and namespace. Every call runs in the caller's transaction."""

    def __init__(self, namespace: str, kind: str) -> None:
        self._key = {"namespace": namespace, "kind": kind}

    async def head(self, connection: AsyncConnection, name: str) -> JournalHead:
        """Return a journal's row; an empty one if it has no records."""
        query = select(journals.c.last, journals.c.state, journals.c.sealed).where(self._of(name))
        row = (await connection.execute(query)).one_or_none()
        return JournalHead(**row._mapping) if row else JournalHead()

    async def append(
        self, connection: AsyncConnection, name: str, lines: Sequence[bytes], state: Mapping[str, int]
    ) -> None:
        """Append encoded records after the last. Raises StoreUnavailable if the journal is sealed."""
        first = insert(connection, journals).values(
            **self._key, name=name, last=len(lines), state=dict(state), sealed=False
        )
        changed = first.on_conflict_do_update(
            index_elements=["namespace", "kind", "name"],
            set_={"last": journals.c.last + len(lines), "state": dict(state)},
            where=journals.c.sealed.is_(False),
        ).returning(journals.c.last)
        last = (await connection.execute(changed)).scalar_one_or_none()
        if last is None:
            raise StoreUnavailable(f"the log of {name} was sealed meanwhile; try again")
        if lines:
            first_number = last - len(lines) + 1
            await connection.execute(
                journal_records.insert(),
                [
                    {**self._key, "name": name, "number": number, "record": line.decode()}
                    for number, line in enumerate(lines, first_number)
                ],
            )

    async def seal(self, connection: AsyncConnection, name: str) -> int:
        """Seal a journal; return its last number."""
        first = insert(connection, journals).values(**self._key, name=name, last=0, state={}, sealed=True)
        changed = first.on_conflict_do_update(
            index_elements=["namespace", "kind", "name"], set_={"sealed": True}
        ).returning(journals.c.last)
        return int((await connection.execute(changed)).scalar_one())

    async def read(self, connection: AsyncConnection, name: str, after: int, limit: int) -> list[Record]:
        """Return up to `limit` records with numbers above `after`, in order; fewer if they are large."""
        return [json.loads(text) for text in await self.texts(connection, name, after, limit)]

    async def texts(self, connection: AsyncConnection, name: str, after: int, limit: int) -> Sequence[str]:
        """Read the records as stored text; none if record `after` + 1 is missing, to keep numbers right."""
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
            .where(func.coalesce(sizes.c.before, 0) < MAX_READ_BYTES)
            .order_by(sizes.c.number)
        )
        rows = (await connection.execute(query)).all()
        return [text for _, text in rows] if rows and rows[0][0] == after + 1 else []

    async def records_containing(
        self, connection: AsyncConnection, name: str, marker: str, first: int, last: int
    ) -> list[Record]:
        """Return the records from `first` to `last` whose text contains `marker`, in any order."""
        query = select(journal_records.c.record).where(
            self._records(name),
            journal_records.c.number.between(first, last),
            func.strpos(journal_records.c.record, cast(marker, Text)) > 0,
        )
        return [json.loads(text) for text in (await connection.execute(query)).scalars()]

    async def delete_batch(self, connection: AsyncConnection, name: str, amount: int) -> bool:
        """Delete up to `amount` records, the first ones; return whether none is left. Keeps the own row."""
        here = self._records(name)
        first = (
            await connection.execute(select(func.min(journal_records.c.number)).where(here))
        ).scalar_one()
        if first is None:
            return True
        batch = journal_records.c.number < first + amount
        deleted = await connection.execute(delete(journal_records).where(here, batch))
        return deleted.rowcount < amount

    async def remove(self, connection: AsyncConnection, name: str) -> None:
        """Delete a journal."""
        await connection.execute(delete(journals).where(self._of(name)))
        await connection.execute(delete(journal_records).where(self._records(name)))

    def _of(self, name: str) -> ColumnElement[bool]:
        return and_(*(journals.c[key] == value for key, value in {**self._key, "name": name}.items()))

    def _records(self, name: str) -> ColumnElement[bool]:
        return and_(*(journal_records.c[key] == value for key, value in {**self._key, "name": name}.items()))
