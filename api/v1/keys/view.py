"""API keys: rows to the API's JSON, and a body to a row. Pure. Called by the routes of keys."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from api.store.index.api_keys import KeyRow
from api.v1.timestamps import moment
from crds.api_keys import ApiKey
from crds.times import parse_time


def item(row: KeyRow) -> dict[str, Any]:
    """A key, never the key itself."""
    return {
        "id": row.id,
        "name": row.name,
        "scopes": sorted(row.scopes),
        "projects": None if row.projects is None else sorted(row.projects),
        "plan": row.plan,
        "created_at": moment(row.created_at),
        "expires_at": moment(row.expires_at),
        "last_used_at": moment(row.last_used_at),
    }


def row(drawn: ApiKey, body: Mapping[str, Any], now: datetime) -> KeyRow:
    """The row of a drawn key from a checked body. Raises ValueError for a moment that cannot be."""
    projects, expires = body.get("projects"), body.get("expires_at")
    return KeyRow(
        id=drawn.key_id,
        hash=drawn.hash,
        name=body["name"],
        scopes=frozenset(body["scopes"]),
        projects=None if projects is None else frozenset(projects),
        plan=body.get("plan"),
        created_at=now,
        expires_at=None if expires is None else parse_time(expires),
    )
