"""API keys as rows: only hashes. Called by the keyring at start and by authentication."""

from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any

from sqlalchemy import Row, select
from sqlalchemy.dialects.sqlite import insert

from api.store.database import Database
from api.store.schema import api_keys


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


_WHOLE = [api_keys.c[field.name] for field in fields(KeyRow)]


class Keys:
    """The table of keys of one namespace."""

    def __init__(self, database: Database, namespace: str) -> None:
        self._database = database
        self._namespace = namespace

    async def get(self, key_id: str) -> KeyRow | None:
        """One key, also a revoked or expired one, or None: always exactly one look-up."""
        query = select(*_WHOLE).where(api_keys.c.namespace == self._namespace, api_keys.c.id == key_id)
        async with self._database.read() as connection:
            row = (await connection.execute(query)).one_or_none()
        return _row(row) if row else None

    async def put(self, key: KeyRow) -> None:
        """Stores a key, replacing one of the same id."""
        values = {field.name: getattr(key, field.name) for field in fields(key)}
        values["scopes"] = sorted(key.scopes)
        values["projects"] = None if key.projects is None else sorted(key.projects)
        async with self._database.write() as connection:
            await connection.execute(
                insert(api_keys)
                .values(namespace=self._namespace, **values)
                .on_conflict_do_update(index_elements=["namespace", "id"], set_=values)
            )

    async def all(self) -> tuple[KeyRow, ...]:
        """All keys, newest first."""
        query = (
            select(*_WHOLE)
            .where(api_keys.c.namespace == self._namespace)
            .order_by(api_keys.c.created_at.desc(), api_keys.c.id)
        )
        async with self._database.read() as connection:
            return tuple(_row(row) for row in await connection.execute(query))


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
