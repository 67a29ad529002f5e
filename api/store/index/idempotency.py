"""What an Idempotency-Key was answered with, kept 24 hours. Called by the routes that create."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from api.store.database import Database

KEPT = timedelta(hours=24)


@dataclass(frozen=True)
class Idempotency:
    """One use of a key: whose (`owner`, the API key's id), the header's text, and the hash of the body."""

    owner: str
    key: str
    body_sha256: str


class IdempotencyKeys:
    """The table of idempotency keys of one namespace."""

    def __init__(self, database: Database, namespace: str) -> None:
        self._database = database
        self._namespace = namespace

    async def find(self, use: Idempotency, now: datetime) -> str | None:
        """The object name this use made before, or None. Raises Taken where the body was another."""
        raise NotImplementedError

    async def put(self, use: Idempotency, name: str, now: datetime) -> str:
        """Records that this use makes `name`; answers the name that was recorded first. Raises Taken."""
        raise NotImplementedError
