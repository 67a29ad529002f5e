"""Authentication of callers with tokens; the `iss` claim selects the provider.

Called by `api.auth.authenticate` for every text that is not a valid key, and by `api.auth.revocation`.
"""

from collections.abc import Awaitable, Callable
from datetime import datetime

from api.auth.jwks import IssuerKeys
from api.auth.kubernetes import KubernetesTokens, Places
from api.auth.oidc import WorkflowTokens
from api.auth.principal import Caller
from api.auth.settings import IdentitySettings
from api.auth.sign_in.settings import SignInSettings
from api.auth.sign_in.users import UserTokens
from api.auth.unverified import parse_unverified
from api.store.index.workflows import Workflows
from kube.client import KubeClient

Guard = Callable[[], Awaitable[None]]
"""Called before the apiserver reviews an unknown token; raises if the client exceeds its rate limit."""


class TokenProviders:
    """The token providers of an installation."""

    def __init__(
        self,
        kubernetes: KubernetesTokens | None,
        workflows: WorkflowTokens | None,
        users: UserTokens | None = None,
    ) -> None:
        self._kubernetes = kubernetes
        self._workflows = workflows
        self.users = users

    @staticmethod
    def from_settings(
        identity: IdentitySettings,
        kube: KubeClient,
        projects: Workflows,
        sign_in: SignInSettings | None = None,
        namespaces: tuple[str, ...] = (),
        places: Places | None = None,
    ) -> "TokenProviders":
        """Create the providers from the settings; `namespaces` and `places` if several are served."""
        audience, issuer = identity.kubernetes_audience, identity.oidc_issuer
        return TokenProviders(
            None if audience is None else KubernetesTokens(kube, audience, namespaces, places),
            None
            if issuer is None
            else WorkflowTokens(issuer, identity.oidc_audience, IssuerKeys(issuer), projects),
            None if sign_in is None else UserTokens(sign_in, IssuerKeys(sign_in.issuer)),
        )

    async def caller(self, text: str, now: datetime, guard: Guard) -> Caller | None:
        """Return the caller of a token; None for every invalid text.

        Raises a 503 if the provider is unavailable, StoreUnavailable, and the errors of `guard`.
        """
        claims = parse_unverified(text)
        if claims is None:
            return None
        if self._workflows is not None and claims.issuer == self._workflows.issuer:
            return await self._workflows.caller(text, claims, now)
        if self.users is not None and claims.issuer == self.users.issuer:
            return await self.users.caller(text, claims, now)
        if self._kubernetes is None:
            return None
        if self._kubernetes.needs_review(text, claims, now):
            await guard()
        return await self._kubernetes.caller(text, claims, now)
