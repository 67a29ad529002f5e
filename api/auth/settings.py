"""Whose tokens the facade takes, from the environment. Part of `api.config`."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

_AUDIENCE = re.compile(r"[\x21-\x7e]{1,255}", re.ASCII)
_LOCAL = ("127.0.0.1", "::1", "localhost")


@dataclass(frozen=True)
class Identity:
    """`kubernetes_audience` None: no Kubernetes tokens; `oidc_issuer` None: no tokens of workflows."""

    kubernetes_audience: str | None = "crewyard"
    oidc_issuer: str | None = None
    oidc_audience: str = ""


def parse_identity(environ: Mapping[str, str], public_url: str, wrong: list[str]) -> Identity:
    """The settings; what is wrong is added to `wrong`. Workflows' tokens are by default for `public_url`."""
    taken = environ.get("CREWYARD_KUBERNETES_TOKENS", "on").lower()
    if taken not in ("on", "off"):
        wrong.append("CREWYARD_KUBERNETES_TOKENS: must be on or off")
    audience = _audience(environ, "CREWYARD_TOKEN_AUDIENCE", "crewyard", wrong)
    return Identity(
        kubernetes_audience=audience if taken == "on" else None,
        oidc_issuer=_issuer(environ, wrong),
        oidc_audience=_audience(environ, "CREWYARD_OIDC_AUDIENCE", public_url, wrong),
    )


def _audience(environ: Mapping[str, str], name: str, default: str, wrong: list[str]) -> str:
    text = environ.get(name) or default
    if not _AUDIENCE.fullmatch(text):
        wrong.append(f"{name}: must be at most 255 visible ASCII characters, for example {default}")
    return text


def _issuer(environ: Mapping[str, str], wrong: list[str]) -> str | None:
    text = environ.get("CREWYARD_OIDC_ISSUER", "")
    if not text:
        return None
    try:
        parts = urlsplit(text)
        local = parts.scheme == "http" and parts.hostname in _LOCAL
        good = (
            (parts.scheme == "https" or local) and parts.hostname and not parts.query and not parts.fragment
        )
    except ValueError:
        good = False
    if not good:
        wrong.append(
            "CREWYARD_OIDC_ISSUER: must be an https:// address exactly as its tokens name it, for example "
            "https://token.actions.githubusercontent.com"
        )
    return text
