"""Who is calling, and what they may do.

Called by `api.gate`, which asks who it is, and by `api.endpoint` and the routes,
which ask what is allowed.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from api import errors
from api.keyring import Keyring

Scope = Literal["read", "run", "deploy", "admin"]
_BEARER = re.compile(r"[Bb][Ee][Aa][Rr][Ee][Rr] +([\x21-\x7e]{1,512})", re.ASCII)


@dataclass(frozen=True)
class Caller:
    """A key that was proved. `projects` None means all projects, `plan` None the best of its projects."""

    key_id: str
    scopes: frozenset[str]
    projects: frozenset[str] | None
    plan: str | None
    expires_at: datetime | None = None

    def may(self, scope: Scope) -> bool:
        """Every key may read; admin may everything; run and deploy are apart."""
        return scope == "read" or scope in self.scopes or "admin" in self.scopes

    def holds(self, project: str) -> bool:
        """Whether the key is for this project."""
        return self.projects is None or project in self.projects

    def require(self, scope: Scope) -> None:
        """Raises the 403 that names the scope which is missing."""
        if not self.may(scope):
            raise errors.forbidden(
                f"this key lacks the scope {scope}; use a key that has it",
                required_scope=scope,
                scopes=sorted(self.scopes),
            )

    def require_project(self, project: str, field: str) -> None:
        """Raises the 403 for a project in a body or a filter that the key is not for, be it there or not."""
        if not self.holds(project):
            raise errors.forbidden(f"this key is not for the project {project}", field=field)

    def visible(self) -> Iterable[str] | None:
        """The projects whose things the key may see; None for all."""
        return self.projects


async def authenticate(keyring: Keyring, header: str | None, now: datetime) -> Caller | None:
    """Whose key the Authorization header carries, or None for every kind of bad one alike."""
    found = _BEARER.fullmatch(header.strip()) if header and len(header) <= 1024 else None
    key = await keyring.find(found[1] if found else "", now)
    if key is None:
        return None
    return Caller(key.key_id, key.scopes, key.projects, key.plan, key.expires_at)
