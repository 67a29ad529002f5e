"""Authentication of GitHub workflow tokens: verified by signature, mapped to projects.

Called by `api.auth.providers`. A name of a repository can be taken by another one after a deletion: the
first workflow that an entry lets in pins the repository's id.
"""

import hashlib
import math
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import jwt
import structlog

from api.auth import workflows
from api.auth.jwks import IssuerKeys
from api.auth.principal import Caller, CallerKind
from api.auth.scopes import Grants
from api.auth.unverified import UnverifiedClaims
from api.store.index.workflows import Workflows

LEEWAY_SECONDS = 30.0
"""Allowed clock skew between the issuer and this process."""
MAX_LIFETIME_SECONDS = 86_400.0
"""Maximum lifetime of a token; workflow tokens live for minutes."""
MAX_TIMESTAMP = 10**11
"""In the year 5138: datetime has no year above 9999."""
CACHE_SECONDS = 10.0
MIN_RELOAD_SECONDS = 1.0
"""Projects are reloaded after CACHE_SECONDS, or after this time if one of them has changed."""
_log = structlog.get_logger("api")


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
        self._pins: dict[tuple[str, str], str] = {}
        self._read_at = -math.inf
        self._read_mark = 0

    async def caller(self, text: str, unverified: UnverifiedClaims, now: datetime) -> Caller | None:
        """Return the workflow as caller with the projects that allow it; None for any other token.

        Raises a 503 if the keys of the issuer are unavailable, StoreUnavailable if the projects are.
        """
        claims = await verified_claims(self._issuer_keys, self._audience, text, unverified, now)
        workflow = None if claims is None else workflows.of_claims(claims)
        if claims is None or workflow is None:
            return None
        matching = [e for e in await self._entries_of(workflow.repository) if e.matches(workflow)]
        accepted = [e for e in matching if await self._is_pinned(e, workflow, now)]
        grants = workflows.grants(accepted, workflow)
        if grants is None:
            return None
        # Without the ref: a user with push access can create any number of refs.
        rate_limit_key = f"workflow:{workflow.repository.lower()}"
        caller = token_caller(text, claims, "workflow", workflow.name, grants, rate_limit_key)
        return replace(caller, commit=workflows.proven_commit(claims))

    async def _is_pinned(
        self, entry: workflows.OidcEntry, workflow: workflows.Workflow, now: datetime
    ) -> bool:
        """Return whether the repository is the one that first used the entry; the first use pins its id.

        An entry with a `repositoryId` needs no pin. Tokens of issuers without such ids pin nothing.
        """
        if entry.repository_id is not None:
            return True
        key = (entry.project_uid, workflow.repository.lower())
        if key not in self._pins and workflow.repository_id is not None:
            self._pins[key] = await self._projects.pin(*key, workflow.repository_id, now)
        pinned = self._pins.get(key)
        if pinned == workflow.repository_id:
            return True
        _log.warning(
            "workflow_repository_changed",
            project=entry.project,
            repository=workflow.repository,
            pinned=pinned,
            given=workflow.repository_id,
        )
        return False

    async def _entries_of(self, repository: str) -> list[workflows.OidcEntry]:
        age = self._clock() - self._read_at
        if age >= CACHE_SECONDS or (age >= MIN_RELOAD_SECONDS and self._projects.changed(self._read_mark)):
            # Take the mark before reading: a change during the read triggers the next reload.
            mark, started = self._projects.mark(), self._clock()
            entries: dict[str, list[workflows.OidcEntry]] = {}
            self._pins = await self._projects.pins()
            for project in await self._projects.all():
                for entry in workflows.entries(project.name, project.oidc, project.uid):
                    entries.setdefault(entry.repository.lower(), []).append(entry)
            self._entries, self._read_mark, self._read_at = entries, mark, started
        return self._entries.get(repository.lower(), [])


def token_caller(
    text: str, claims: Mapping[str, Any], kind: CallerKind, key_id: str, grants: Grants, rate_limit_key: str
) -> Caller:
    """Return the caller with a token of these verified claims, until the token expires. Pure."""
    return Caller(
        key_id=key_id,
        grants=grants,
        plan=None,
        expires_at=datetime.fromtimestamp(claims["exp"] + LEEWAY_SECONDS, UTC),
        kind=kind,
        rate_limit_key=rate_limit_key,
        credential_id=f"token:{hashlib.sha256(text.encode()).hexdigest()}",
        token=text,
    )


async def verified_claims(
    issuer_keys: IssuerKeys, audience: str, text: str, unverified: UnverifiedClaims, now: datetime
) -> Mapping[str, Any] | None:
    """Return the claims of a valid token of the issuer for this audience, or None.

    Raises a 503 if the keys of the issuer are unavailable.
    """
    key = await issuer_keys.key(unverified.algorithm, unverified.key_id)
    if key is None:
        return None
    claims = verify(text, key, unverified.algorithm, issuer_keys.issuer, audience)
    return claims if claims is not None and is_current(claims, now) else None


def verify(text: str, key: Any, algorithm: str, issuer: str, audience: str) -> Mapping[str, Any] | None:
    """Return the claims of a token signed by this key, from this issuer, for this audience only. Pure."""
    try:
        claims: Mapping[str, Any] = jwt.decode(
            text,
            key,
            algorithms=[algorithm],
            issuer=issuer,
            options={
                "require": ["iss", "aud", "exp", "iat"],
                # Checked below: a list may hold this audience (RFC 7519), but no other one.
                "verify_aud": False,
                # `is_current` checks these against the given time.
                "verify_exp": False,
                "verify_nbf": False,
                "verify_iat": False,
            },
        )
    except (jwt.PyJWTError, ValueError, TypeError, RecursionError):
        return None
    return claims if claims["aud"] in (audience, [audience]) else None


def is_current(claims: Mapping[str, Any], now: datetime) -> bool:
    """Return whether the token is valid at `now`: issued, active, not expired, lifetime in bounds. Pure."""
    timestamps: list[Any] = [claims.get("iat"), claims.get("nbf", 0), claims.get("exp")]
    if not all(type(timestamp) is int and 0 <= timestamp < MAX_TIMESTAMP for timestamp in timestamps):
        return False
    issued, not_before, expires = timestamps
    now_seconds = now.timestamp()
    return bool(
        max(issued, not_before) <= now_seconds + LEEWAY_SECONDS
        and now_seconds < expires + LEEWAY_SECONDS
        and expires - issued <= MAX_LIFETIME_SECONDS
    )
