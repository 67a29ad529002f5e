"""Binding of API keys to the uids of their projects: a later project of the same name accepts none of them.

Called by `api.store.index.api_keys`, and by the table of projects when one appears or is deleted.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from sqlalchemy import Text, cast, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from api.store.index.deletion.removed_projects import PROJECT_PRESENT
from api.store.sql.schema import api_keys, projects


async def current_uids(connection: AsyncConnection, namespace: str, names: Iterable[str]) -> dict[str, str]:
    """Return the uids of those of the projects that exist."""
    query = select(projects.c.name, projects.c.uid).where(
        projects.c.namespace == namespace, projects.c.name.in_(sorted(names)), PROJECT_PRESENT
    )
    return {row.name: row.uid for row in await connection.execute(query)}


def accepted_projects(
    names: frozenset[str], bound: Mapping[str, str], current: Mapping[str, str]
) -> frozenset[str]:
    """Return the projects that a key is valid for: those it is bound to, and new ones. Pure."""
    return frozenset(name for name in names if name not in bound or bound[name] == current.get(name))


async def bind(connection: AsyncConnection, namespace: str, name: str, uid: str) -> None:
    """Bind the keys that were made for a project before it existed."""
    for key in await _keys_of(connection, namespace, name):
        if name not in (key.project_uids or {}):
            await _change(connection, namespace, key.id, project_uids={**(key.project_uids or {}), name: uid})


async def revoke(connection: AsyncConnection, namespace: str, name: str, uid: str, now: datetime) -> None:
    """Take a deleted project from its keys; revoke those that have no other."""
    for key in await _keys_of(connection, namespace, name):
        bound = dict(key.project_uids or {})
        # A key without a binding was made while the project was being recorded.
        if bound.pop(name, uid) != uid:
            continue
        left = [project for project in key.projects if project != name]
        if left:
            await _change(connection, namespace, key.id, projects=left, project_uids=bound)
        else:
            await _change(connection, namespace, key.id, revoked_at=now)


async def _keys_of(connection: AsyncConnection, namespace: str, name: str) -> list[Any]:
    query = select(api_keys.c.id, api_keys.c.projects, api_keys.c.project_uids).where(
        api_keys.c.namespace == namespace,
        api_keys.c.revoked_at.is_(None),
        cast(api_keys.c.projects, Text).contains(f'"{name}"'),
    )
    return list(await connection.execute(query))


async def _change(connection: AsyncConnection, namespace: str, key_id: str, **values: Any) -> None:
    here = (api_keys.c.namespace == namespace, api_keys.c.id == key_id)
    await connection.execute(update(api_keys).where(*here).values(**values))
