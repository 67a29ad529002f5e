"""The Secret of `spec.github.secretRef`: a token, or the key of a GitHub App. Pure.

The keys of an App are those that Flux uses. Called by `controller.github.reconcile`.
"""

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

TOKEN = "token"
APP_ID = "githubAppID"
APP_INSTALLATION = "githubAppInstallationID"
APP_KEY = "githubAppPrivateKey"


class CredentialsProblem(ValueError):
    """The Secret cannot be used; the text says which key is wrong, never what it holds."""


@dataclass(frozen=True)
class Token:
    """A token of a user or of a machine."""

    token: str = field(repr=False)


@dataclass(frozen=True)
class App:
    """An installation of a GitHub App with its private key (PEM)."""

    app: str
    installation: str
    key: str = field(repr=False)


Credentials = Token | App


def of_secret(secret: Mapping[str, Any] | None, name: str) -> Credentials:
    """What a Secret holds, as the apiserver gives it (None: there is none). Raises CredentialsProblem."""
    if secret is None:
        raise CredentialsProblem(f"there is no Secret {name}; create it, or correct spec.github.secretRef")
    data = {key: _text(name, key, value) for key, value in (secret.get("data") or {}).items()}
    if data.get(TOKEN):
        return Token(data[TOKEN])
    missing = [key for key in (APP_ID, APP_INSTALLATION, APP_KEY) if not data.get(key)]
    if missing:
        raise CredentialsProblem(
            f"the Secret {name} has neither {TOKEN} nor a whole App: {', '.join(missing)} "
            f"{'is' if len(missing) == 1 else 'are'} missing"
        )
    numbers = {key: data[key] for key in (APP_ID, APP_INSTALLATION)}
    for key, number in numbers.items():
        if not (number.isascii() and number.isdecimal()):
            raise CredentialsProblem(f"{key} of the Secret {name} must be a number")
    return App(numbers[APP_ID], numbers[APP_INSTALLATION], data[APP_KEY])


def _text(name: str, key: str, value: str) -> str:
    try:
        return base64.b64decode(value).decode().strip()
    except (binascii.Error, UnicodeDecodeError):
        raise CredentialsProblem(f"{key} of the Secret {name} is no text") from None
