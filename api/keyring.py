"""The keys that are known: the installation's first ones, and those in the index.

Called by `api.auth`. Whatever is wrong with a key, finding that out costs one
look-up and one hash, so that time tells a guesser nothing.
"""

import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from api.schemas import SCOPES
from crds import keys

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


class Keyring:
    """Finds the key behind a text."""

    def __init__(self, fixed: Mapping[str, Key], look_up: LookUp) -> None:
        self._fixed = fixed
        self._look_up = look_up

    async def find(self, text: str, now: datetime) -> Key | None:
        """The key that `text` is, if it is good at `now`; None for any other text.

        Raises what the index raises where it cannot be read.
        """
        key_id = keys.key_id_of(text) or ""
        fixed = self._fixed.get(key_id)
        if fixed is not None and keys.matches(text, fixed.hash):
            return fixed if _holds(fixed, now) else None
        stored = await self._look_up(key_id)
        if fixed is not None:
            return None
        good = keys.matches(text, stored.hash if stored else _NO_HASH)
        return stored if stored is not None and key_id and good and _holds(stored, now) else None


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
