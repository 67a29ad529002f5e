"""API keys as rows: only hashes. Called by the keyring at start and by authentication."""

from dataclasses import dataclass
from datetime import datetime

from api.store.database import Database


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


class Keys:
    """The table of keys of one namespace."""

    def __init__(self, database: Database, namespace: str) -> None:
        self._database = database
        self._namespace = namespace

    async def get(self, key_id: str) -> KeyRow | None:
        """One key, also a revoked or expired one, or None: always exactly one look-up."""
        raise NotImplementedError

    async def put(self, key: KeyRow) -> None:
        """Stores a key, replacing one of the same id."""
        raise NotImplementedError

    async def all(self) -> tuple[KeyRow, ...]:
        """All keys, newest first."""
        raise NotImplementedError
