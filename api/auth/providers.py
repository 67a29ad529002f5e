"""Callers with a token instead of a key: who is asked about it depends on whom it says it is from.

Called by `api.auth.authenticate` for every text that is no good key, and by `api.auth.revocation`.
"""

from collections.abc import Awaitable, Callable
from datetime import datetime

from api.auth.jwks import Signers
from api.auth.kubernetes import KubernetesTokens
from api.auth.oidc import WorkflowTokens
from api.auth.principal import Caller
from api.auth.settings import Identity
from api.auth.unverified import glance
from api.store.index.workflows import Workflows
from kube.client import Kube

Guard = Callable[[], Awaitable[None]]
"""Called before the apiserver is asked about a stranger's token; raises where the asker has had enough."""


class Tokens:
    """What the installation accepts besides keys."""

    def __init__(self, kubernetes: KubernetesTokens | None, workflows: WorkflowTokens | None) -> None:
        self._kubernetes = kubernetes
        self._workflows = workflows

    @staticmethod
    def of(identity: Identity, kube: Kube, projects: Workflows) -> "Tokens":
        """As the settings say."""
        audience, issuer = identity.kubernetes_audience, identity.oidc_issuer
        return Tokens(
            None if audience is None else KubernetesTokens(kube, audience),
            None
            if issuer is None
            else WorkflowTokens(issuer, identity.oidc_audience, Signers(issuer), projects),
        )

    async def caller(self, text: str, now: datetime, guard: Guard) -> Caller | None:
        """Who the token proves, or None alike for every text that proves nobody.

        Raises the 503 where whoever knows cannot be asked, StoreUnavailable, and what `guard` raises.
        """
        seen = glance(text)
        if seen is None:
            return None
        if self._workflows is not None and seen.issuer == self._workflows.issuer:
            return await self._workflows.caller(text, seen, now)
        if self._kubernetes is None:
            return None
        if self._kubernetes.strange(text, seen, now):
            await guard()
        return await self._kubernetes.caller(text, seen, now)
