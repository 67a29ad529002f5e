"""API key rows as JSON, and request bodies as rows. Pure. Called by the routes of keys."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from api.store.index.api_keys import KeyRow
from api.v1.timestamps import timestamp
from crds.api_keys import ApiKey
from crds.times import parse_time


def item(row: KeyRow) -> dict[str, Any]:
    """Return the metadata of a key, without the key."""
    return {
        "id": row.id,
        "name": row.name,
        "scopes": sorted(row.scopes),
        "projects": None if row.projects is None else sorted(row.projects),
        "plan": row.plan,
        "created_at": timestamp(row.created_at),
        "created_by": row.created_by,
        "expires_at": timestamp(row.expires_at),
        "last_used_at": timestamp(row.last_used_at),
    }


def row(api_key: ApiKey, body: Mapping[str, Any], creator: str, now: datetime) -> KeyRow:
    """Return the row of a generated key for a validated body. Raises ValueError for an invalid time."""
    projects, expires = body.get("projects"), body.get("expires_at")
    return KeyRow(
        id=api_key.key_id,
        hash=api_key.hash,
        name=body["name"],
        scopes=frozenset(body["scopes"]),
        projects=None if projects is None else frozenset(projects),
        plan=body.get("plan"),
        created_at=now,
        created_by=creator,
        expires_at=None if expires is None else parse_time(expires),
    )
