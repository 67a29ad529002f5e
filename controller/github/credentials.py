"""Credentials in the Secret of `spec.github.secretRef`: a token, or the key of a GitHub App. Pure.

The Secret keys of an App are those of Flux. Called by `controller.github.reconcile`.
"""

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

TOKEN_KEY = "token"
APP_ID = "githubAppID"
APP_INSTALLATION = "githubAppInstallationID"
APP_KEY = "githubAppPrivateKey"


class CredentialsProblem(ValueError):
    """Invalid Secret; the message names the key, never its value."""


@dataclass(frozen=True)
class GitHubToken:
    """Token of a user or a machine account."""

    token: str = field(repr=False)


@dataclass(frozen=True)
class GitHubApp:
    """Installation of a GitHub App with its private key (PEM)."""

    app: str
    installation: str
    key: str = field(repr=False)


Credentials = GitHubToken | GitHubApp


def of_secret(secret: Mapping[str, Any] | None, name: str) -> Credentials:
    """Parse a Secret from the apiserver (None if missing). Raises CredentialsProblem."""
    if secret is None:
        raise CredentialsProblem(f"Secret {name} does not exist; create it, or correct spec.github.secretRef")
    data = {key: _text(name, key, value) for key, value in (secret.get("data") or {}).items()}
    if data.get(TOKEN_KEY):
        return GitHubToken(data[TOKEN_KEY])
    missing = [key for key in (APP_ID, APP_INSTALLATION, APP_KEY) if not data.get(key)]
    if missing:
        raise CredentialsProblem(
            f"the Secret {name} has neither {TOKEN_KEY} nor a complete App: {', '.join(missing)} "
            f"{'is' if len(missing) == 1 else 'are'} missing"
        )
    numbers = {key: data[key] for key in (APP_ID, APP_INSTALLATION)}
    for key, number in numbers.items():
        if not (number.isascii() and number.isdecimal()):
            raise CredentialsProblem(f"{key} of the Secret {name} must be a number")
    return GitHubApp(numbers[APP_ID], numbers[APP_INSTALLATION], data[APP_KEY])


def _text(name: str, key: str, value: str) -> str:
    try:
        return base64.b64decode(value).decode().strip()
    except (binascii.Error, UnicodeDecodeError):
        raise CredentialsProblem(f"{key} of the Secret {name} is not UTF-8 text") from None
