"""API keys as rows: only hashes. Called by authentication and by the routes of keys."""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from datetime import datetime
from typing import Any

from sqlalchemy import Row, select, update

from api.store.sql.database import Database
from api.store.sql.notifier import Signals
from api.store.sql.schema import api_keys
from api.store.sql.upsert import insert


@dataclass(frozen=True)
class KeyRow:
    """A key: `projects` None means all; `scopes` of read, run, deploy, admin."""

    id: str
    hash: str
    name: str
    scopes: frozenset[str]
    projects: frozenset[str] | None
    plan: str | None
    created_at: datetime
    expires_at: datetime | None = None
    revoked_at: datetime | None = None
    last_used_at: datetime | None = None

    def within(self, projects: frozenset[str] | None) -> bool:
        """Whether the key is for no other projects than these; None stands for all."""
        return projects is None or (self.projects is not None and self.projects <= projects)


_WHOLE = [api_keys.c[field.name] for field in fields(KeyRow)]


AT_ONCE = 500
"""Keys asked for in one statement."""
_RING = "keys"


class Keys:
    """The table of keys of one namespace. `signals` rings, in every replica, when one is revoked."""

    def __init__(self, database: Database, namespace: str, signals: Signals) -> None:
        self._database = database
        self._namespace = namespace
        self._signals = signals
        self._used: dict[str, datetime] = {}

    async def get(self, key_id: str) -> KeyRow | None:
        """One key, also a revoked or expired one, or None: always exactly one look-up."""
        query = select(*_WHOLE).where(api_keys.c.namespace == self._namespace, api_keys.c.id == key_id)
        async with self._database.brief_read() as connection:
            row = (await connection.execute(query)).one_or_none()
        return _row(row) if row else None

    async def put(self, key: KeyRow) -> None:
        """Stores a key, replacing one of the same id."""
        values = {field.name: getattr(key, field.name) for field in fields(key)}
        values["scopes"] = sorted(key.scopes)
        values["projects"] = None if key.projects is None else sorted(key.projects)
        async with self._database.write() as connection:
            await connection.execute(
                insert(connection, api_keys)
                .values(namespace=self._namespace, **values)
                .on_conflict_do_update(index_elements=["namespace", "id"], set_=values)
            )

    async def all(self) -> tuple[KeyRow, ...]:
        """All keys that are not revoked, also expired ones, newest first, with their last use."""
        query = (
            select(*_WHOLE)
            .where(api_keys.c.namespace == self._namespace, api_keys.c.revoked_at.is_(None))
            .order_by(api_keys.c.created_at.desc(), api_keys.c.id)
        )
        async with self._database.read() as connection:
            found = [_row(row) for row in await connection.execute(query)]
        return tuple(replace(row, last_used_at=self._used.get(row.id) or row.last_used_at) for row in found)

    async def revoke(self, key_id: str, now: datetime) -> None:
        """The key holds no longer. Its row stays, so that its id is never that of another one."""
        here = (api_keys.c.namespace == self._namespace, api_keys.c.id == key_id)
        async with self._database.write() as connection:
            await connection.execute(
                update(api_keys).where(*here, api_keys.c.revoked_at.is_(None)).values(revoked_at=now)
            )
        self._signals.ring(_RING)

    async def revoked(self, ids: Sequence[str]) -> list[str]:
        """Those of the keys that are revoked."""
        found: list[str] = []
        for begin in range(0, len(ids), AT_ONCE):
            query = select(api_keys.c.id).where(
                api_keys.c.namespace == self._namespace,
                api_keys.c.id.in_(ids[begin : begin + AT_ONCE]),
                api_keys.c.revoked_at.is_not(None),
            )
            async with self._database.read() as connection:
                found += (await connection.execute(query)).scalars()
        return found

    def mark(self) -> int:
        """The present moment, to be taken before looking and given to `wait`."""
        return self._signals.mark

    async def wait(self, mark: int, timeout: float) -> None:
        """Returns at once if a key was revoked since `mark`, else when one is, or after `timeout` seconds."""
        await self._signals.wait(_RING, mark, timeout)

    def used(self, key_id: str, now: datetime) -> None:
        """Remembers a use; `write_uses` stores it. Only for good keys, so there are not many."""
        self._used[key_id] = now

    async def write_uses(self) -> None:
        """Stores the uses since the last time, many in one transaction."""
        uses = dict(self._used)
        if not uses:
            return
        async with self._database.write() as connection:
            for key_id, at in uses.items():
                await connection.execute(
                    update(api_keys)
                    .where(api_keys.c.namespace == self._namespace, api_keys.c.id == key_id)
                    .values(last_used_at=at)
                )
        for key_id, at in uses.items():
            if self._used.get(key_id) == at:
                del self._used[key_id]


def _row(row: Row[Any]) -> KeyRow:
    values = dict(row._mapping)
    held = values["projects"]
    return KeyRow(
        **{
            **values,
            "scopes": frozenset(values["scopes"]),
            "projects": None if held is None else frozenset(held),
        }
    )
