"""The keys that are known: the installation's first ones, and those in the index.

Called by `api.auth.authenticate`. Whatever is wrong with a key, finding that out costs one
look-up and one hash, so that time tells a guesser nothing. A good one costs its hash
alone while nothing in the index has changed since it was looked up.
"""

import hmac
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from api.store.sql.generation_cache import Lasting
from api.auth.scopes import SCOPES
from crds import api_keys

_NO_HASH = "0" * 64


@dataclass(frozen=True)
class Key:
    """A stored key: never the key itself. `projects` None means all of them.

    `plan` None means the best plan of its projects.
    """

    key_id: str
    hash: str
    name: str
    scopes: frozenset[str]
    projects: frozenset[str] | None
    plan: str | None
    expires_at: datetime | None = None
    revoked: bool = False


LookUp = Callable[[str], Awaitable[Key | None]]
Generation = Callable[[], int | None]
"""`Database.generation`: the same number says that no key has changed."""
MOST = 1000
"""Good keys that are remembered."""


class Keyring:
    """Finds the key behind a text."""

    def __init__(
        self, fixed: Mapping[str, Key], look_up: LookUp, generation: Generation = lambda: None
    ) -> None:
        self._fixed = fixed
        self._look_up = look_up
        # By the hash of all of it: who does not have the whole key finds nothing here.
        self._good: Lasting[str, Key] = Lasting(generation, MOST)

    async def find(self, text: str, now: datetime) -> Key | None:
        """The key that `text` is, if it is good at `now`; None for any other text.

        Raises what the index raises where it cannot be read.
        """
        given = api_keys.hash_of(text)
        known = self._good.get(given)
        if known is not None and _holds(known, now):
            return known
        key_id = api_keys.key_id_of(text) or ""
        fixed = self._fixed.get(key_id)
        if fixed is not None and hmac.compare_digest(given, fixed.hash):
            return fixed if _holds(fixed, now) else None
        before = self._good.now()
        stored = await self._look_up(key_id)
        if fixed is not None:
            return None
        good = hmac.compare_digest(given, stored.hash if stored else _NO_HASH)
        if stored is None or not key_id or not good or not _holds(stored, now):
            return None
        self._good.put(before, given, stored)
        return stored


def _holds(key: Key, now: datetime) -> bool:
    return not key.revoked and (key.expires_at is None or now < key.expires_at)


def parse_fixed(text: str) -> dict[str, Key]:
    """The keys of CREWYARD_ADMIN_KEYS, a JSON list. Raises ValueError that says what is wrong."""
    if not text.strip():
        return {}
    try:
        records = json.loads(text)
    except ValueError as error:
        raise ValueError("CREWYARD_ADMIN_KEYS is not JSON") from error
    if not isinstance(records, list):
        raise ValueError("CREWYARD_ADMIN_KEYS must be a JSON list of keys")
    found = [_record(index, record) for index, record in enumerate(records)]
    return {key.key_id: key for key in found}


def _record(index: int, record: Any) -> Key:
    try:
        scopes = frozenset(record["scopes"])
        projects = record.get("projects")
        if not scopes or not scopes <= set(SCOPES):
            raise ValueError("scopes must be some of " + ", ".join(SCOPES))
        return Key(
            key_id=str(record["id"]),
            hash=str(record["hash"]),
            name=str(record.get("name") or ""),
            scopes=scopes,
            projects=None if projects is None else frozenset(projects),
            plan=str(record["plan"]) if record.get("plan") else None,
        )
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise ValueError(
            f"CREWYARD_ADMIN_KEYS: entry {index} needs id, hash and scopes (some of {', '.join(SCOPES)})"
        ) from error
