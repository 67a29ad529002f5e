"""Authentication of users by ID tokens of the OpenID provider. Called by `api.auth.providers`."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from api.auth.jwks import IssuerKeys
from api.auth.oidc import token_caller, verified_claims
from api.auth.principal import Caller
from api.auth.scopes import NO_SCOPES, Grants
from api.auth.sign_in.settings import GroupEntry, SignInSettings
from api.auth.unverified import UnverifiedClaims

_MAX_NAME_LENGTH = 255


class UserTokens:
    """Authenticates users with ID tokens that the provider issued for this installation's client."""

    def __init__(self, settings: SignInSettings, issuer_keys: IssuerKeys) -> None:
        self._settings = settings
        self._issuer_keys = issuer_keys

    @property
    def issuer(self) -> str:
        """The issuer of the tokens."""
        return self._settings.issuer

    async def claims(
        self, text: str, unverified: UnverifiedClaims, now: datetime
    ) -> Mapping[str, Any] | None:
        """Return the claims of a valid token, or None. Raises a 503 if its keys are unavailable."""
        return await verified_claims(self._issuer_keys, self._settings.client_id, text, unverified, now)

    async def caller(self, text: str, unverified: UnverifiedClaims, now: datetime) -> Caller | None:
        """Return the user with the scopes of its groups; None without any, or for an invalid token."""
        claims = await self.claims(text, unverified, now)
        name = None if claims is None else user_name(claims)
        if claims is None or name is None:
            return None
        granted = grants(self._settings.groups, claims.get(self._settings.groups_claim))
        if granted is None:
            return None
        return token_caller(text, claims, "user", f"user:{name}", granted, f"user:{claims['sub']}")


def user_name(claims: Mapping[str, Any]) -> str | None:
    """Return the verified email address, else the subject; None without a printable one. Pure.

    Names that a user may choose are not used: the audit log could show the name of another user.
    """
    email, subject = claims.get("email"), claims.get("sub")
    if not _is_name(subject):
        return None
    return str(email if claims.get("email_verified") is True and _is_name(email) else subject)


def _is_name(value: Any) -> bool:
    return isinstance(value, str) and 0 < len(value) <= _MAX_NAME_LENGTH and value.isprintable()


def grants(entries: Iterable[GroupEntry], groups: Any) -> Grants | None:
    """Return the scopes of all entries whose group is among `groups`, plus read; None without any. Pure."""
    member_of = (
        frozenset(name for name in groups if isinstance(name, str)) if isinstance(groups, list) else ()
    )
    everywhere, by_project = None, dict[str, frozenset[str]]()
    for entry in entries:
        if entry.group not in member_of:
            continue
        scopes = entry.scopes | {"read"}
        if entry.projects is None:
            everywhere = (everywhere or NO_SCOPES) | scopes
        for project in entry.projects or ():
            by_project[project] = by_project.get(project, NO_SCOPES) | scopes
    return None if everywhere is None and not by_project else Grants(everywhere, by_project)
