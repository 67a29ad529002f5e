"""Authentication of Kubernetes tokens by TokenReview and SubjectAccessReview.

A token must be issued for the audience of this service (`kubectl create token NAME --audience
crewyard`), so clients never send a token that is valid at the apiserver. The scopes follow from
the RBAC permissions of its user in each served namespace. Called by `api.auth.providers`.
"""

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import structlog

from api import errors
from api.auth.principal import Caller
from api.auth.scopes import Grants, Scope
from api.auth.ttl_cache import TtlCache
from api.auth.unverified import UnverifiedClaims
from crds.names import GROUP
from kube import errors as kube_errors
from kube.client import KubeClient

CACHE_SECONDS = 10.0
MAX_CACHED_TOKENS = 10_000
REVIEW_TIMEOUT_SECONDS = 4.0
"""Deadline for the apiserver; the API promises a response within 5 s."""
MAX_PARALLEL_REVIEWS = 8
MAX_PARALLEL_ACCESS_REVIEWS = 32
"""Of all tokens together: with many namespaces a token needs hundreds."""
MAX_PENDING_REVIEWS = 64
"""Tokens in review or waiting for one; more are rejected immediately."""
REQUIRED_ACCESS: Mapping[Scope, tuple[str, str]] = {
    "read": ("get", "runs"),
    "run": ("create", "runs"),
    "deploy": ("create", "deployments"),
    "admin": ("*", "projects"),
}
"""Scope → verb and resource that the user must be allowed in the namespace. `deploy` includes `preview`."""
Places = Callable[[], Awaitable[Mapping[str, str | None]]]
"""Returns the namespace of each project, None for the installation's own."""
_TOKEN_REVIEWS = "/apis/authentication.k8s.io/v1/tokenreviews"
_ACCESS_REVIEWS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
_log = structlog.get_logger("api")


class KubernetesTokens:
    """Authenticates callers with Kubernetes tokens."""

    def __init__(
        self,
        kube: KubeClient,
        audience: str,
        namespaces: tuple[str, ...] = (),
        places: Places | None = None,
    ) -> None:
        """`namespaces`: all served ones if there are several; `places` are their projects."""
        self._kube = kube
        self._audience = audience
        self._namespaces = namespaces or (kube.namespace,)
        self._places = places
        self._cache = TtlCache[Caller](CACHE_SECONDS, MAX_CACHED_TOKENS)
        self._slots = asyncio.Semaphore(MAX_PARALLEL_REVIEWS)
        self._access_slots = asyncio.Semaphore(MAX_PARALLEL_ACCESS_REVIEWS)
        self._pending = 0

    def needs_review(self, text: str, claims: UnverifiedClaims, now: datetime) -> bool:
        """Return whether this token needs a TokenReview and was never accepted before.

        A token that was accepted before is exempt from the guard: other clients behind the same address
        (such as a proxy) cannot lock it out.
        """
        key = _digest(text)
        return (
            self._accepts(claims, now) and not self._cache.is_cached(key) and not self._cache.was_valid(key)
        )

    async def caller(self, text: str, claims: UnverifiedClaims, now: datetime) -> Caller | None:
        """Return the caller of a token, or None. Results of the apiserver are cached for ten seconds.

        Raises a 503 if the apiserver does not respond in time.
        """
        if not self._accepts(claims, now):
            return None
        caller = await self._cache.get(_digest(text), lambda: self._review_bounded(text, claims))
        if caller is None or self._places is None:
            return caller
        return await self._confined(caller, self._places)

    async def _confined(self, caller: Caller, places: Places) -> Caller:
        """Return the caller with its scopes in the projects of each namespace: projects come and go."""
        scopes, own = caller.namespaces or {}, self._kube.namespace
        everywhere = frozenset.intersection(*(scopes[name] for name in self._namespaces))
        by_project = {project: scopes.get(place or own) for project, place in (await places()).items()}
        granted = {project: found for project, found in by_project.items() if found}
        return replace(caller, grants=Grants(everywhere or None, granted))

    def _accepts(self, claims: UnverifiedClaims, now: datetime) -> bool:
        return self._audience in claims.audiences and not claims.expired(now)

    async def _review_bounded(self, text: str, claims: UnverifiedClaims) -> Caller | None:
        if self._pending >= MAX_PENDING_REVIEWS:
            raise errors.unavailable("too many tokens are being checked; try again shortly")
        self._pending += 1
        try:
            async with asyncio.timeout(REVIEW_TIMEOUT_SECONDS), self._slots:
                return await self._review_token(text, claims)
        except (kube_errors.KubeError, TimeoutError, KeyError, TypeError) as error:
            _log.warning("token_review_failed", error=f"{type(error).__name__}: {error}"[:500])
            raise errors.unavailable(
                "the Kubernetes API cannot check the token right now; try again shortly"
            ) from error
        finally:
            self._pending -= 1

    async def _review_token(self, text: str, claims: UnverifiedClaims) -> Caller | None:
        status = await self._post_review(
            _TOKEN_REVIEWS, "authentication.k8s.io/v1", "TokenReview",
            {"token": text, "audiences": [self._audience]},
        )  # fmt: skip
        # An authenticator without audiences returns none: its tokens are meant for the apiserver only.
        if status.get("authenticated") is not True or self._audience not in (status.get("audiences") or ()):
            return None
        user = status["user"]
        found = await asyncio.gather(*(self._scopes(user, namespace) for namespace in self._namespaces))
        by_namespace = dict(zip(self._namespaces, found, strict=True))
        name = f"kubernetes:{user['username']}"
        return Caller(
            key_id=name,
            grants=Grants(found[0]),
            namespaces=None if self._places is None else by_namespace,
            plan=None,
            expires_at=_timestamp(claims.expires),
            kind="kubernetes",
            rate_limit_key=name,
            credential_id=f"token:{_digest(text)}",
            token=text,
        )

    async def _scopes(self, user: Mapping[str, Any], namespace: str) -> frozenset[Scope]:
        """Return the scopes of a user in a namespace."""
        allowed_access = await asyncio.gather(
            *(self._access_allowed(user, namespace, *access) for access in REQUIRED_ACCESS.values())
        )
        return frozenset(
            scope for scope, allowed in zip(REQUIRED_ACCESS, allowed_access, strict=True) if allowed
        )

    async def _access_allowed(
        self, user: Mapping[str, Any], namespace: str, verb: str, resource: str
    ) -> bool:
        spec = {
            "user": user["username"],
            "uid": user.get("uid") or "",
            "groups": user.get("groups") or [],
            "extra": user.get("extra") or {},
            "resourceAttributes": {
                "namespace": namespace,
                "group": GROUP,
                "resource": resource,
                "verb": verb,
            },
        }
        async with self._access_slots:
            status = await self._post_review(
                _ACCESS_REVIEWS, "authorization.k8s.io/v1", "SubjectAccessReview", spec
            )
        return status.get("allowed") is True

    async def _post_review(
        self, path: str, version: str, kind: str, spec: Mapping[str, Any]
    ) -> Mapping[str, Any]:
        review = await self._kube.call(
            "POST", path, body={"apiVersion": version, "kind": kind, "spec": dict(spec)}
        )
        status: Mapping[str, Any] = review["status"]
        return status


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _timestamp(seconds: float | None) -> datetime | None:
    try:
        return None if seconds is None else datetime.fromtimestamp(seconds, UTC)
    except (ValueError, OverflowError, OSError):
        return None
