"""Table of API keys, which stores only hashes. Called by authentication and by the routes of keys."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import datetime
from typing import Any

from sqlalchemy import Row, select, update

from api.store.index import key_bindings
from api.store.sql.database import Database
from api.store.sql.notifier import Notifier
from api.store.sql.schema import api_keys
from api.store.sql.upsert import insert


@dataclass(frozen=True)
class KeyRow:
    """An API key: `projects` None means all; `scopes` of read, run, deploy, admin.

    `project_uids` has the uids of its projects by name; one that did not exist yet has none.
    """

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
    created_by: str | None = None
    project_uids: Mapping[str, str] | None = None

    def is_bound_to(self, project: str) -> bool:
        """Return whether the key names this project."""
        return self.projects is not None and project in self.projects

    def is_within(self, projects: frozenset[str] | None) -> bool:
        """Return whether the key covers no other projects than these; None means all."""
        return projects is None or (self.projects is not None and self.projects <= projects)


_COLUMNS = [api_keys.c[field.name] for field in fields(KeyRow)]


KEYS_PER_QUERY = 500
"""Keys per statement."""
_NOTIFY_KEY = "keys"


class ApiKeys:
    """The API keys of one namespace. Revoking a key fires `notifier`, in every replica."""

    def __init__(self, database: Database, namespace: str, notifier: Notifier) -> None:
        self._database = database
        self._namespace = namespace
        self._notifier = notifier
        self._used: dict[str, datetime] = {}

    async def get(self, key_id: str) -> KeyRow | None:
        """Return one key, even a revoked or expired one, or None.

        Its projects are those of the uids that it was made for; without any left, it is None.
        """
        query = select(*_COLUMNS).where(api_keys.c.namespace == self._namespace, api_keys.c.id == key_id)
        async with self._database.brief_read() as connection:
            found = (await connection.execute(query)).one_or_none()
            row = _row(found) if found else None
            if row is None or not row.project_uids or not row.projects:
                return row
            current = await key_bindings.current_uids(connection, self._namespace, row.projects)
        accepted = key_bindings.accepted_projects(row.projects, row.project_uids, current)
        return replace(row, projects=accepted) if accepted else None

    async def put(self, key: KeyRow) -> None:
        """Store a key, replacing one of the same id, bound to the projects that exist now."""
        values = {field.name: getattr(key, field.name) for field in fields(key)}
        values["scopes"] = sorted(key.scopes)
        values["projects"] = None if key.projects is None else sorted(key.projects)
        async with self._database.write() as connection:
            if key.projects is not None:
                uids = await key_bindings.current_uids(connection, self._namespace, key.projects)
                values["project_uids"] = uids or None
            await connection.execute(
                insert(connection, api_keys)
                .values(namespace=self._namespace, **values)
                .on_conflict_do_update(index_elements=["namespace", "id"], set_=values)
            )

    async def all(self) -> tuple[KeyRow, ...]:
        """Return all keys that are not revoked, even expired ones, newest first, with their last use."""
        query = (
            select(*_COLUMNS)
            .where(api_keys.c.namespace == self._namespace, api_keys.c.revoked_at.is_(None))
            .order_by(api_keys.c.created_at.desc(), api_keys.c.id)
        )
        async with self._database.read() as connection:
            rows = [_row(row) for row in await connection.execute(query)]
        return tuple(replace(row, last_used_at=self._used.get(row.id) or row.last_used_at) for row in rows)

    async def revoke(self, key_id: str, now: datetime) -> None:
        """Revoke a key. Its row stays, to prevent reuse of its id."""
        here = (api_keys.c.namespace == self._namespace, api_keys.c.id == key_id)
        async with self._database.write() as connection:
            await connection.execute(
                update(api_keys).where(*here, api_keys.c.revoked_at.is_(None)).values(revoked_at=now)
            )
        self._notifier.notify(_NOTIFY_KEY)

    async def revoked(self, ids: Sequence[str]) -> list[str]:
        """Return those of the keys that are revoked."""
        revoked: list[str] = []
        for start in range(0, len(ids), KEYS_PER_QUERY):
            query = select(api_keys.c.id).where(
                api_keys.c.namespace == self._namespace,
                api_keys.c.id.in_(ids[start : start + KEYS_PER_QUERY]),
                api_keys.c.revoked_at.is_not(None),
            )
            async with self._database.read() as connection:
                revoked += (await connection.execute(query)).scalars()
        return revoked

    def mark(self) -> int:
        """Return the current position; take it before reading and pass it to `wait`."""
        return self._notifier.mark

    async def wait(self, mark: int, timeout: float) -> None:
        """Return as soon as a key has been revoked since `mark`, or after `timeout` seconds."""
        await self._notifier.wait(_NOTIFY_KEY, mark, timeout)

    def record_use(self, key_id: str, now: datetime) -> None:
        """Record a use in memory; `flush_uses` stores it. Called for valid keys only, so these are few."""
        self._used[key_id] = now

    async def flush_uses(self) -> None:
        """Store the uses since the last call, all in one transaction."""
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
    projects = values["projects"]
    return KeyRow(
        **{
            **values,
            "scopes": frozenset(values["scopes"]),
            "projects": None if projects is None else frozenset(projects),
        }
    )
