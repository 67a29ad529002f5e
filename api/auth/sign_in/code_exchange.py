"""The exchange of an authorization code for an ID token at the OpenID provider (RFC 6749, RFC 7636).

The console keeps the PKCE verifier and the state; the provider sees the client's secret from here alone.
Called by `api.console.sign_in`.
"""

import asyncio
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, urlsplit

import aiohttp
import structlog

from api import errors
from api.auth.authenticate import MAX_BEARER_LENGTH
from api.auth.jwks import REQUEST_FAILURES, REQUEST_TIMEOUT_SECONDS, parse_response, read_discovery
from api.auth.sign_in.settings import SignInSettings
from api.auth.ttl_cache import TtlCache

DISCOVERY_SECONDS = 900.0
EXCHANGE_TIMEOUT_SECONDS = 15.0
"""Timeout of a code's exchange: a code is valid once, so a user whose exchange times out signs in again."""
_UNAVAILABLE = "the identity provider cannot be reached right now; try again shortly, or use an API key"
_log = structlog.get_logger("api")


class CodeExchange:
    """The provider's endpoints of one installation."""

    def __init__(self, settings: SignInSettings, redirect_uri: str) -> None:
        self.settings = settings
        self.redirect_uri = redirect_uri
        self._discovery = TtlCache[Mapping[str, Any]](DISCOVERY_SECONDS, 1)

    async def authorization_endpoint(self) -> str:
        """Return where users sign in. Raises a 503 if the provider is unavailable."""
        return await self._endpoint("authorization_endpoint")

    async def id_token(self, code: str, verifier: str) -> str:
        """Return the ID token for a code.

        Raises 400 for an invalid code, 403 for a token that no request can carry, 503 without the provider.
        """
        url = await self._endpoint("token_endpoint")
        settings = self.settings
        form = {"grant_type": "authorization_code", "code": code, "code_verifier": verifier}
        form |= {"redirect_uri": self.redirect_uri, "client_id": settings.client_id}
        headers: dict[str, str] = {}
        if settings.client_secret:
            # RFC 6749, 2.3.1: both are form-encoded first.
            pair = quote(settings.client_id, ""), quote(settings.client_secret, "")
            headers["Authorization"] = aiohttp.encode_basic_auth(*pair)
        try:
            async with (
                _session(EXCHANGE_TIMEOUT_SECONDS) as session,
                session.post(url, data=form, headers=headers, allow_redirects=False) as response,
            ):
                found = await parse_response(response)
        except REQUEST_FAILURES as error:
            _log.warning(
                "sign_in_failed", issuer=settings.issuer, error=f"{type(error).__name__}: {error}"[:300]
            )
            raise errors.unavailable(_UNAVAILABLE) from error
        token = found.get("id_token") if isinstance(found, dict) else None
        if response.status == 200 and isinstance(token, str):
            if len(token) > MAX_BEARER_LENGTH:
                raise errors.forbidden(
                    f"your token of the identity provider has {len(token)} characters, at most "
                    f"{MAX_BEARER_LENGTH} are allowed; ask the operator to limit the groups that it lists"
                )
            return token
        reason = str(found.get("error") if isinstance(found, dict) else response.status)[:100]
        _log.warning("sign_in_refused", issuer=settings.issuer, status=response.status, error=reason)
        if response.status == 400 and reason == "invalid_grant":
            raise errors.invalid("the sign-in is no longer valid; start it again", "code")
        raise errors.unavailable(f"the identity provider refused this service ({reason}); ask the operator")

    async def _endpoint(self, name: str) -> str:
        discovery = await self._discovery.get("", self._discover)
        url = str((discovery or {}).get(name))
        if urlsplit(url).scheme != urlsplit(self.settings.issuer).scheme:
            raise errors.unavailable(_UNAVAILABLE)
        return url

    async def _discover(self) -> Mapping[str, Any]:
        try:
            seconds = 2 * REQUEST_TIMEOUT_SECONDS
            async with asyncio.timeout(seconds), _session(seconds) as session:
                return await read_discovery(session, self.settings.issuer)
        except REQUEST_FAILURES as error:
            _log.warning(
                "issuer_unreadable",
                issuer=self.settings.issuer,
                error=f"{type(error).__name__}: {error}"[:300],
            )
            raise errors.unavailable(_UNAVAILABLE) from error


def _session(seconds: float) -> aiohttp.ClientSession:
    return aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(seconds), trust_env=True)
