"""Lookup of API keys: fixed keys of the installation, and keys in the index.

Called by `api.auth.authenticate`. Every failed check costs a lookup and a hash: response time
tells at most that a key of this id exists. A valid key costs only its hash while the index is
unchanged since its lookup.
"""

import hmac
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from api.auth.scopes import SCOPES
from api.store.sql.generation_cache import GenerationCache
from crds import api_keys

_NO_HASH = "0" * 64


@dataclass(frozen=True)
class StoredKey:
    """A key as it is stored, without its secret. `projects` None: all projects.

    `plan` None: the best plan of its projects.
    """

    key_id: str
    hash: str
    name: str
    scopes: frozenset[str]
    projects: frozenset[str] | None
    plan: str | None
    expires_at: datetime | None = None
    revoked: bool = False


FindKey = Callable[[str], Awaitable[StoredKey | None]]
Generation = Callable[[], int | None]
"""`Database.generation`: an equal number means that no key has changed."""
MAX_CACHED_KEYS = 1000
"""Valid keys in the cache."""


class Keyring:
    """Finds the stored key of a bearer text."""

    def __init__(
        self, fixed: Mapping[str, StoredKey], find_key: FindKey, generation: Generation = lambda: None
    ) -> None:
        self._fixed = fixed
        self._find_key = find_key
        # Keyed by the hash of the whole key: a partial key never hits the cache.
        self._cache: GenerationCache[str, StoredKey] = GenerationCache(generation, MAX_CACHED_KEYS)

    async def find(self, text: str, now: datetime) -> StoredKey | None:
        """Return the stored key of `text` if it is valid at `now`; None for any other text.

        Raises the errors of the index if it is unreadable.
        """
        key_hash = api_keys.hash_of(text)
        cached = self._cache.get(key_hash)
        if cached is not None and _valid(cached, now):
            return cached
        key_id = api_keys.key_id_of(text) or ""
        fixed = self._fixed.get(key_id)
        if fixed is not None and hmac.compare_digest(key_hash, fixed.hash):
            return fixed if _valid(fixed, now) else None
        before = self._cache.generation()
        stored = await self._find_key(key_id)
        if fixed is not None:
            return None
        matches = hmac.compare_digest(key_hash, stored.hash if stored else _NO_HASH)
        if stored is None or not matches or not _valid(stored, now):
            return None
        self._cache.put(before, key_hash, stored)
        return stored


def _valid(key: StoredKey, now: datetime) -> bool:
    return not key.revoked and (key.expires_at is None or now < key.expires_at)


def parse_fixed(text: str) -> dict[str, StoredKey]:
    """Parse CREWYARD_ADMIN_KEYS, a JSON list of keys. Raises ValueError with the reason."""
    if not text.strip():
        return {}
    try:
        records = json.loads(text)
    except ValueError as error:
        raise ValueError("CREWYARD_ADMIN_KEYS is not JSON") from error
    if not isinstance(records, list):
        raise ValueError("CREWYARD_ADMIN_KEYS must be a JSON list of keys")
    keys = [_parse_entry(index, record) for index, record in enumerate(records)]
    return {key.key_id: key for key in keys}


def _parse_entry(index: int, entry: Any) -> StoredKey:
    try:
        scopes = frozenset(entry["scopes"])
        projects = entry.get("projects")
        if not scopes or not scopes <= set(SCOPES):
            raise ValueError("scopes must be some of " + ", ".join(SCOPES))
        return StoredKey(
            key_id=str(entry["id"]),
            hash=str(entry["hash"]),
            name=str(entry.get("name") or ""),
            scopes=scopes,
            projects=None if projects is None else frozenset(projects),
            plan=str(entry["plan"]) if entry.get("plan") else None,
        )
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise ValueError(
            f"CREWYARD_ADMIN_KEYS: entry {index} needs id, hash and scopes (some of {', '.join(SCOPES)})"
        ) from error
