"""Tokens of the cluster, service accounts' above all: the apiserver says whose they are and what these may.

A token must be made for our audience (`kubectl create token NAME --audience crewyard`),
so that nobody hands us one that opens the apiserver itself. The scopes follow from
what its owner may do with the objects in the namespace. Called by `api.auth.providers`.
"""

import asyncio
import hashlib
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import structlog

from api import errors
from api.auth.principal import Caller
from api.auth.scopes import Grants, Scope
from api.auth.ttl_cache import Recent
from api.auth.unverified import Glance
from crds.names import GROUP
from kube import errors as kube_errors
from kube.client import Kube

HOLDS_SECONDS = 10.0
REMEMBERED = 10_000
ANSWER_SECONDS = 4.0
"""How long a caller waits for the apiserver; an answer is promised in 5."""
AT_ONCE = 8
WAITING = 64
"""Tokens that are asked about or wait for it; more are turned away at once."""
NEEDS: Mapping[Scope, tuple[str, str]] = {
    "read": ("get", "runs"),
    "run": ("create", "runs"),
    "deploy": ("create", "deployments"),
    "admin": ("*", "projects"),
}
"""Scope → what its owner must be allowed to do in the namespace: verb and resource."""
_REVIEWS = "/apis/authentication.k8s.io/v1/tokenreviews"
_ACCESS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
_log = structlog.get_logger("api")


class KubernetesTokens:
    """Callers with tokens of the cluster."""

    def __init__(self, kube: Kube, audience: str) -> None:
        self._kube = kube
        self._audience = audience
        self._recent = Recent[Caller](HOLDS_SECONDS, REMEMBERED)
        self._places = asyncio.Semaphore(AT_ONCE)
        self._waiting = 0

    def strange(self, text: str, seen: Glance, now: datetime) -> bool:
        """Whether the apiserver will be asked about this token, which was never found good.

        What was good before is no stranger's: others at its address (a proxy's, say) cannot lock it out.
        """
        key = _digest(text)
        return self._for_us(seen, now) and not self._recent.known(key) and not self._recent.was_good(key)

    async def caller(self, text: str, seen: Glance, now: datetime) -> Caller | None:
        """The token's owner, or None. What the apiserver said holds for ten seconds.

        Raises the 503 where it does not answer in time.
        """
        if not self._for_us(seen, now):
            return None
        caller = await self._recent.get(_digest(text), lambda: self._bounded(text, seen))
        # Remembered though it was, it may have expired since.
        return None if caller is None or (caller.expires_at and now >= caller.expires_at) else caller

    def _for_us(self, seen: Glance, now: datetime) -> bool:
        return self._audience in seen.audiences and not seen.late(now)

    async def _bounded(self, text: str, seen: Glance) -> Caller | None:
        if self._waiting >= WAITING:
            raise errors.unavailable("too many tokens are being checked; try again shortly")
        self._waiting += 1
        try:
            async with asyncio.timeout(ANSWER_SECONDS), self._places:
                return await self._ask(text, seen)
        except (kube_errors.KubeError, TimeoutError, KeyError, TypeError) as error:
            _log.warning("token_review_failed", error=f"{type(error).__name__}: {error}"[:500])
            raise errors.unavailable(
                "the Kubernetes API cannot check the token right now; try again shortly"
            ) from error
        finally:
            self._waiting -= 1

    async def _ask(self, text: str, seen: Glance) -> Caller | None:
        status = await self._review(
            _REVIEWS, "authentication.k8s.io/v1", "TokenReview",
            {"token": text, "audiences": [self._audience]},
        )  # fmt: skip
        # An authenticator that knows no audiences names none: its tokens are for the apiserver, not for us.
        if status.get("authenticated") is not True or self._audience not in (status.get("audiences") or ()):
            return None
        user = status["user"]
        held = await asyncio.gather(*(self._may(user, *needed) for needed in NEEDS.values()))
        scopes = frozenset(scope for scope, allowed in zip(NEEDS, held, strict=True) if allowed)
        name = f"kubernetes:{user['username']}"
        return Caller(
            key_id=name,
            grants=Grants(scopes),
            plan=None,
            expires_at=_moment(seen.expires),
            kind="kubernetes",
            counted_as=name,
            session=f"token:{_digest(text)}",
            token=text,
        )

    async def _may(self, user: Mapping[str, Any], verb: str, resource: str) -> bool:
        status = await self._review(
            _ACCESS, "authorization.k8s.io/v1", "SubjectAccessReview",
            {
                "user": user["username"],
                "uid": user.get("uid") or "",
                "groups": user.get("groups") or [],
                "extra": user.get("extra") or {},
                "resourceAttributes": {
                    "namespace": self._kube.namespace, "group": GROUP, "resource": resource, "verb": verb,
                },
            },
        )  # fmt: skip
        return status.get("allowed") is True

    async def _review(self, path: str, version: str, kind: str, spec: Mapping[str, Any]) -> Mapping[str, Any]:
        answer = await self._kube.call(
            "POST", path, body={"apiVersion": version, "kind": kind, "spec": dict(spec)}
        )
        status: Mapping[str, Any] = answer["status"]
        return status


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _moment(seconds: float | None) -> datetime | None:
    try:
        return None if seconds is None else datetime.fromtimestamp(seconds, UTC)
    except (ValueError, OverflowError, OSError):
        return None
