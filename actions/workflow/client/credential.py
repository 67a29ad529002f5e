"""Who the step is: an API key, or the workflow's own OpenID Connect token. Called by both programs."""

import json
import time
from collections.abc import Callable, Mapping
from typing import Protocol
from urllib.parse import quote

from actions.workflow.errors import Failed
from actions.workflow.inputs import Inputs

# GitHub's tokens hold for five minutes at least; a build or a run may take hours.
_TOKEN_SECONDS = 240.0
_FORKS = "GitHub gives neither to pull requests from forks and from Dependabot."


class Credential(Protocol):
    """What is sent as the bearer."""

    def bearer(self) -> str:
        """The text to send now."""
        ...

    def renew(self) -> bool:
        """After a 401: whether another try may succeed."""
        ...

    @property
    def advice(self) -> str:
        """After the last 401: what to look at."""
        ...


class Key:
    """An API key."""

    def __init__(self, text: str) -> None:
        self._text = text

    def bearer(self) -> str:
        """The key."""
        return self._text

    def renew(self) -> bool:
        """A key that does not hold never will."""
        return False

    @property
    def advice(self) -> str:
        """The input to look at."""
        return "Is the input api-key a key of this installation that still holds?"


class Oidc:
    """The workflow's identity, asked for anew before it expires. `fetch` gets a URL and its bearer."""

    def __init__(
        self,
        url: str,
        request_token: str,
        audience: str,
        fetch: Callable[[str, str], bytes],
        mask: Callable[[str], None],
    ) -> None:
        separator = "&" if "?" in url else "?"
        self._url = f"{url}{separator}audience={quote(audience, safe='')}"
        self._request_token, self._fetch, self._mask = request_token, fetch, mask
        self._token: str | None = None
        self._until = 0.0

    def bearer(self) -> str:
        """A token that holds a while still. Raises Failed where GitHub gives none."""
        if self._token is None or time.monotonic() >= self._until:
            self._token = self._asked()
            self._mask(self._token)
            self._until = time.monotonic() + _TOKEN_SECONDS
        return self._token

    def renew(self) -> bool:
        """A new token may hold where the refused one expired."""
        self._token = None
        return True

    @property
    def advice(self) -> str:
        """The Project and the audience to look at: the service tells nobody which of them it is."""
        return (
            "Does the project's oidc name this repository, and this git reference and environment or none? "
            "Is the input oidc-audience the one that the installation takes?"
        )

    def _asked(self) -> str:
        try:
            value = json.loads(self._fetch(self._url, self._request_token))["value"]
        except (ValueError, KeyError, TypeError):
            raise Failed("GitHub's answer to the request for an OIDC token has no token in it.") from None
        if not isinstance(value, str) or not value or not value.isascii() or not value.isprintable():
            raise Failed("GitHub's answer to the request for an OIDC token has no token in it.")
        return value


def credential(
    inputs: Inputs,
    environment: Mapping[str, str],
    fetch: Callable[[str, str], bytes],
    mask: Callable[[str], None],
) -> Credential:
    """The key of `api-key`, or the identity for `oidc-audience`. Raises Failed with what is missing."""
    key, audience = inputs.text("api-key"), inputs.text("oidc-audience")
    mask(key)
    if key and audience:
        raise Failed("Give one of the inputs api-key and oidc-audience, not both.")
    if key:
        if not key.isascii() or not key.isprintable() or " " in key:
            raise Failed("The input api-key has white space or other letters in it that no key has.")
        return Key(key)
    if not audience:
        raise Failed(f"The inputs api-key and oidc-audience are both empty. {_FORKS}")
    url = environment.get("ACTIONS_ID_TOKEN_REQUEST_URL", "")
    token = environment.get("ACTIONS_ID_TOKEN_REQUEST_TOKEN", "")
    if not url or not token:
        raise Failed(
            "GitHub gives this job no OIDC token: add `permissions: id-token: write` to it. " + _FORKS
        )
    return Oidc(url, token, audience, fetch, mask)
