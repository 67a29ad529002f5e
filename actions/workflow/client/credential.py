"""Credential of the step: an API key, or the workflow's OpenID Connect token. Called by both actions."""

import json
import time
from collections.abc import Callable, Mapping
from typing import Protocol
from urllib.parse import quote

from actions.workflow.errors import ErrorResponse, StepFailed
from actions.workflow.inputs import Inputs

# GitHub's tokens are valid for at least five minutes; a build or a run may take hours.
_TOKEN_SECONDS = 240.0
_FORKS_NOTE = "GitHub gives neither to pull requests from forks and from Dependabot."


class StepCredential(Protocol):
    """Source of the bearer token of requests."""

    def bearer(self, seconds: float) -> str:
        """Return the current bearer token; `seconds` bounds each network wait for a new one."""
        ...

    def renew(self) -> bool:
        """Handle a 401; return whether a retry may succeed."""
        ...

    @property
    def advice(self) -> str:
        """What to check after the last 401."""
        ...


class ApiKeyCredential:
    """An API key."""

    def __init__(self, text: str) -> None:
        self._text = text

    def bearer(self, _seconds: float) -> str:
        """Return the key."""
        return self._text

    def renew(self) -> bool:
        """Return False: a rejected key stays rejected."""
        return False

    @property
    def advice(self) -> str:
        """The input to check."""
        return "Is the input api-key a valid, unexpired key of this installation?"


class OidcCredential:
    """The workflow's OIDC token, renewed before it expires.

    `fetch` takes a URL, a bearer token and the seconds that bound each network wait.
    """

    def __init__(
        self,
        url: str,
        request_token: str,
        audience: str,
        fetch: Callable[[str, str, float], bytes],
        mask: Callable[[str], None],
    ) -> None:
        separator = "&" if "?" in url else "?"
        self._url = f"{url}{separator}audience={quote(audience, safe='')}"
        self._request_token, self._fetch, self._mask = request_token, fetch, mask
        self._token: str | None = None
        self._renew_at = 0.0

    def bearer(self, seconds: float) -> str:
        """Return a token, requesting a new one if needed.

        Returns the old token if the request fails but may succeed later: the API decides whether the token
        is still valid, and `renew` discards it if not. Raises StepFailed, and ErrorResponse without an old
        token, if GitHub issues none.
        """
        if self._token is None or time.monotonic() >= self._renew_at:
            try:
                token = self._request_token_value(seconds)
            except ErrorResponse:
                if self._token is None:
                    raise
                return self._token
            self._mask(token)
            self._token, self._renew_at = token, time.monotonic() + _TOKEN_SECONDS
        return self._token

    def renew(self) -> bool:
        """Discard the token and return True: a new one may be accepted if the old one expired."""
        self._token = None
        return True

    @property
    def advice(self) -> str:
        """The Project and the audience to check; the service does not reveal which one was wrong."""
        return (
            "Does the project's oidc name this repository, and this git ref and environment or none? "
            "Is the input oidc-audience the audience of this installation?"
        )

    def _request_token_value(self, seconds: float) -> str:
        try:
            value = json.loads(self._fetch(self._url, self._request_token, seconds))["value"]
        except (ValueError, KeyError, TypeError):
            raise StepFailed("GitHub's response to the request for an OIDC token has no token.") from None
        if not isinstance(value, str) or not value or not value.isascii() or not value.isprintable():
            raise StepFailed("GitHub's response to the request for an OIDC token has no token.")
        return value


def credential(
    inputs: Inputs,
    environment: Mapping[str, str],
    fetch: Callable[[str, str, float], bytes],
    mask: Callable[[str], None],
) -> StepCredential:
    """Return the credential for `api-key` or `oidc-audience`. Raises StepFailed if neither is usable."""
    key, audience = inputs.text("api-key"), inputs.text("oidc-audience")
    mask(key)
    if key and audience:
        raise StepFailed("Give one of the inputs api-key and oidc-audience, not both.")
    if key:
        if not key.isascii() or not key.isprintable() or " " in key:
            raise StepFailed("The input api-key has whitespace or other invalid characters; copy it again.")
        return ApiKeyCredential(key)
    if not audience:
        raise StepFailed(f"The inputs api-key and oidc-audience are both empty. {_FORKS_NOTE}")
    url = environment.get("ACTIONS_ID_TOKEN_REQUEST_URL", "")
    token = environment.get("ACTIONS_ID_TOKEN_REQUEST_TOKEN", "")
    if not url or not token:
        raise StepFailed(
            "GitHub issues no OIDC token for this job: add `permissions: id-token: write` to it. "
            + _FORKS_NOTE
        )
    return OidcCredential(url, token, audience, fetch, mask)
