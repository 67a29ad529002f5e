"""Tokens of GitHub's workflows: proved by their issuer's signature, mapped by the projects.

Called by `api.auth.providers`.
"""

import hashlib
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

import jwt

from api.auth import workflows
from api.auth.jwks import Signers
from api.auth.principal import Caller
from api.auth.unverified import Glance
from api.store.index.workflows import Workflows

LEEWAY = 30.0
"""Seconds by which the issuer's clock and ours may differ."""
LONGEST = 86_400.0
"""Seconds a token may hold in all; a workflow's holds for minutes."""
HOLDS_SECONDS = 10.0
SETTLED_SECONDS = 1.0
"""The projects are read again after ten seconds, and a second after they were read where one changed."""


class WorkflowTokens:
    """Callers with tokens of one issuer."""

    def __init__(
        self,
        issuer: str,
        audience: str,
        signers: Signers,
        projects: Workflows,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.issuer = issuer
        self._audience = audience
        self._signers = signers
        self._projects = projects
        self._clock = clock
        self._entries: dict[str, list[workflows.Entry]] = {}
        self._read_at = float("-inf")
        self._mark = 0

    async def caller(self, text: str, seen: Glance, now: datetime) -> Caller | None:
        """The workflow that the token proves, in the projects that let it in; None for any other token.

        Raises the 503 where the issuer's keys cannot be had, StoreUnavailable where the projects cannot.
        """
        key = await self._signers.key(seen.algorithm, seen.signer)
        if key is None:
            return None
        claims = proved(text, key, seen.algorithm, self.issuer, self._audience)
        if claims is None or not timely(claims, now):
            return None
        workflow = workflows.of_claims(claims)
        if workflow is None:
            return None
        grants = workflows.grants(await self._of(workflow.repository), workflow)
        if grants is None:
            return None
        return Caller(
            key_id=workflow.name,
            grants=grants,
            plan=None,
            expires_at=datetime.fromtimestamp(claims["exp"] + LEEWAY, UTC),
            kind="workflow",
            # Not by the reference: whoever may push to a repository can make as many as they like.
            counted_as=f"workflow:{workflow.repository.lower()}",
            session=f"token:{hashlib.sha256(text.encode()).hexdigest()}",
            token=text,
        )

    async def _of(self, repository: str) -> list[workflows.Entry]:
        age = self._clock() - self._read_at
        if age >= HOLDS_SECONDS or (age >= SETTLED_SECONDS and self._projects.changed(self._mark)):
            # The mark is older than the look, so that a change in between is seen the next time.
            mark, begun = self._projects.mark(), self._clock()
            found: dict[str, list[workflows.Entry]] = {}
            for project, oidc in await self._projects.all():
                for entry in workflows.entries(project, oidc):
                    found.setdefault(entry.repository.lower(), []).append(entry)
            self._entries, self._mark, self._read_at = found, mark, begun
        return self._entries.get(repository.lower(), [])


def proved(text: str, key: Any, algorithm: str, issuer: str, audience: str) -> Mapping[str, Any] | None:
    """The claims of a token that this key signed, from this issuer and for this audience alone. Pure."""
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
                # `timely` does these, by the clock it is given.
                "verify_exp": False,
                "verify_nbf": False,
                "verify_iat": False,
            },
        )
    except (jwt.PyJWTError, ValueError, TypeError, RecursionError):
        return None
    return claims


def timely(claims: Mapping[str, Any], now: datetime) -> bool:
    """Whether the token holds at `now`: issued, begun, not over, and not made for too long. Pure."""
    issued, begins, ends = claims.get("iat"), claims.get("nbf", 0), claims.get("exp")
    moments = (issued, begins, ends)
    if not all(isinstance(one, int) and not isinstance(one, bool) and 0 <= one < 1e11 for one in moments):
        return False
    assert isinstance(issued, int) and isinstance(begins, int) and isinstance(ends, int)
    at = now.timestamp()
    return max(issued, begins) <= at + LEEWAY and at < ends + LEEWAY and ends - issued <= LONGEST
