"""Authentication of GitHub workflow tokens: verified by signature, mapped to projects.

Called by `api.auth.providers`.
"""

import hashlib
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

import jwt

from api.auth import workflows
from api.auth.jwks import IssuerKeys
from api.auth.principal import Caller
from api.auth.unverified import UnverifiedClaims
from api.store.index.workflows import Workflows

LEEWAY_SECONDS = 30.0
"""Allowed clock skew between the issuer and this process."""
MAX_LIFETIME_SECONDS = 86_400.0
"""Maximum lifetime of a token; workflow tokens live for minutes."""
CACHE_SECONDS = 10.0
MIN_RELOAD_SECONDS = 1.0
"""Projects are reloaded after CACHE_SECONDS, or after this time if one of them has changed."""


class WorkflowTokens:
    """Authenticates callers with tokens of one issuer."""

    def __init__(
        self,
        issuer: str,
        audience: str,
        issuer_keys: IssuerKeys,
        projects: Workflows,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.issuer = issuer
        self._audience = audience
        self._issuer_keys = issuer_keys
        self._projects = projects
        self._clock = clock
        self._entries: dict[str, list[workflows.OidcEntry]] = {}
        self._read_at = float("-inf")
        self._read_mark = 0

    async def caller(self, text: str, unverified: UnverifiedClaims, now: datetime) -> Caller | None:
        """Return the workflow as caller with the projects that allow it; None for any other token.

        Raises a 503 if the keys of the issuer are unavailable, StoreUnavailable if the projects are.
        """
        key = await self._issuer_keys.key(unverified.algorithm, unverified.key_id)
        if key is None:
            return None
        claims = verify(text, key, unverified.algorithm, self.issuer, self._audience)
        if claims is None or not is_current(claims, now):
            return None
        workflow = workflows.of_claims(claims)
        if workflow is None:
            return None
        grants = workflows.grants(await self._entries_of(workflow.repository), workflow)
        if grants is None:
            return None
        return Caller(
            key_id=workflow.name,
            grants=grants,
            plan=None,
            expires_at=datetime.fromtimestamp(claims["exp"] + LEEWAY_SECONDS, UTC),
            kind="workflow",
            # Without the ref: a user with push access can create any number of refs.
            rate_limit_key=f"workflow:{workflow.repository.lower()}",
            credential_id=f"token:{hashlib.sha256(text.encode()).hexdigest()}",
            token=text,
        )

    async def _entries_of(self, repository: str) -> list[workflows.OidcEntry]:
        age = self._clock() - self._read_at
        if age >= CACHE_SECONDS or (age >= MIN_RELOAD_SECONDS and self._projects.changed(self._read_mark)):
            # Take the mark before reading: a change during the read triggers the next reload.
            mark, started = self._projects.mark(), self._clock()
            entries: dict[str, list[workflows.OidcEntry]] = {}
            for project, oidc in await self._projects.all():
                for entry in workflows.entries(project, oidc):
                    entries.setdefault(entry.repository.lower(), []).append(entry)
            self._entries, self._read_mark, self._read_at = entries, mark, started
        return self._entries.get(repository.lower(), [])


def verify(text: str, key: Any, algorithm: str, issuer: str, audience: str) -> Mapping[str, Any] | None:
    """Return the claims of a token signed by this key, from this issuer, for this audience only. Pure."""
    try:
        claims: Mapping[str, Any] = jwt.decode(
            text,
            key,
            algorithms=[algorithm],
            issuer=issuer,
            audience=audience,
            options={
                "require": ["iss", "aud", "exp", "iat"],
                "strict_aud": True,
                # `is_current` checks these against the given time.
                "verify_exp": False,
                "verify_nbf": False,
                "verify_iat": False,
            },
        )
    except (jwt.PyJWTError, ValueError, TypeError, RecursionError):
        return None
    return claims


def is_current(claims: Mapping[str, Any], now: datetime) -> bool:
    """Return whether the token is valid at `now`: issued, active, not expired, lifetime in bounds. Pure."""
    issued, not_before, expires = claims.get("iat"), claims.get("nbf", 0), claims.get("exp")
    timestamps = (issued, not_before, expires)
    if not all(
        isinstance(timestamp, int) and not isinstance(timestamp, bool) and 0 <= timestamp < 1e11
        for timestamp in timestamps
    ):
        return False
    assert isinstance(issued, int) and isinstance(not_before, int) and isinstance(expires, int)
    now_seconds = now.timestamp()
    return (
        max(issued, not_before) <= now_seconds + LEEWAY_SECONDS
        and now_seconds < expires + LEEWAY_SECONDS
        and expires - issued <= MAX_LIFETIME_SECONDS
    )
