"""Decodes token claims without verifying them. Pure. Called by `api.auth.providers`.

Rejects texts that are not JSON Web Tokens, so they never reach the apiserver or an issuer.
"""

import base64
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

_SHAPE = re.compile(r"([A-Za-z0-9_-]{4,1000})\.([A-Za-z0-9_-]{4,8000})\.[A-Za-z0-9_-]{40,1400}", re.ASCII)
"""A signature by an RSA key of 8192 bits has 1366 characters."""


@dataclass(frozen=True)
class UnverifiedClaims:
    """Unverified claims of a token. `expires` in epoch seconds, None if the token never expires."""

    algorithm: str
    key_id: str
    issuer: str
    audiences: frozenset[str]
    expires: float | None

    def expired(self, now: datetime) -> bool:
        """Return whether the token has expired by its own claim."""
        return self.expires is not None and self.expires <= now.timestamp()


def parse_unverified(text: str) -> UnverifiedClaims | None:
    """Return the claims of a well-formed token; None for any other text."""
    match = _SHAPE.fullmatch(text)
    if match is None:
        return None
    header, claims = _object(match[1]), _object(match[2])
    if header is None or claims is None:
        return None
    audience, expires = claims.get("aud"), claims.get("exp")
    audiences = audience if isinstance(audience, list) else [audience]
    if expires is not None and (isinstance(expires, bool) or not isinstance(expires, int | float)):
        return None
    return UnverifiedClaims(
        algorithm=_text(header.get("alg")),
        key_id=_text(header.get("kid")),
        issuer=_text(claims.get("iss")),
        audiences=frozenset(name for name in audiences if isinstance(name, str)),
        expires=expires,
    )


def _object(part: str) -> Mapping[str, Any] | None:
    try:
        # The decoder ignores padding that is not needed.
        value = json.loads(base64.urlsafe_b64decode(part + "=="))
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
