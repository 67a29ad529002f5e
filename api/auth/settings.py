"""Settings of the accepted token issuers, from the environment. Part of `api.config`."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

_AUDIENCE = re.compile(r"[\x21-\x7e]{1,255}", re.ASCII)
_LOCAL = ("127.0.0.1", "::1", "localhost")


@dataclass(frozen=True)
class IdentitySettings:
    """Token settings. `kubernetes_audience` None: no Kubernetes tokens; `oidc_issuer` None: no OIDC."""

    kubernetes_audience: str | None = "crewyard"
    oidc_issuer: str | None = None
    oidc_audience: str = ""


def parse_identity(environ: Mapping[str, str], public_url: str, wrong: list[str]) -> IdentitySettings:
    """Parse the settings; append errors to `wrong`. The OIDC audience defaults to `public_url`."""
    enabled = environ.get("CREWYARD_KUBERNETES_TOKENS", "on").lower()
    if enabled not in ("on", "off"):
        wrong.append("CREWYARD_KUBERNETES_TOKENS: must be on or off")
    audience = _audience(environ, "CREWYARD_TOKEN_AUDIENCE", "crewyard", wrong)
    return IdentitySettings(
        kubernetes_audience=audience if enabled == "on" else None,
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
    if not is_issuer(text):
        wrong.append(
            "CREWYARD_OIDC_ISSUER: must be an https:// URL equal to the iss claim of its tokens, for example "
            "https://token.actions.githubusercontent.com"
        )
    return text


def is_issuer(text: str) -> bool:
    """Return whether a text is the URL of an issuer: https, or http of this machine. Pure."""
    try:
        parts = urlsplit(text)
    except ValueError:
        return False
    is_loopback = parts.scheme == "http" and parts.hostname in _LOCAL
    return bool(
        (parts.scheme == "https" or is_loopback) and parts.hostname and not parts.query and not parts.fragment
    )
