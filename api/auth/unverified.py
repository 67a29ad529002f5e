"""What a token says of itself, before anybody has proved it. Pure. Called by `api.auth.providers`.

A text that is no JSON Web Token is turned away here, and so never reaches the apiserver or an issuer.
"""

import base64
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

_SHAPE = re.compile(r"([A-Za-z0-9_-]{4,1000})\.([A-Za-z0-9_-]{4,6000})\.[A-Za-z0-9_-]{40,1000}", re.ASCII)


@dataclass(frozen=True)
class Glance:
    """Claims of a token, unproved. `expires` in epoch seconds, None where it never does."""

    algorithm: str
    signer: str
    issuer: str
    audiences: frozenset[str]
    expires: float | None

    def late(self, now: datetime) -> bool:
        """Whether it says itself that it has expired."""
        return self.expires is not None and self.expires <= now.timestamp()


def glance(text: str) -> Glance | None:
    """What a well-formed token says; None for any other text."""
    found = _SHAPE.fullmatch(text)
    if found is None:
        return None
    header, claims = _object(found[1]), _object(found[2])
    if header is None or claims is None:
        return None
    audience, expires = claims.get("aud"), claims.get("exp")
    named = audience if isinstance(audience, list) else [audience]
    if expires is not None and (isinstance(expires, bool) or not isinstance(expires, int | float)):
        return None
    return Glance(
        algorithm=_text(header.get("alg")),
        signer=_text(header.get("kid")),
        issuer=_text(claims.get("iss")),
        audiences=frozenset(name for name in named if isinstance(name, str)),
        expires=expires,
    )


def _object(part: str) -> Mapping[str, Any] | None:
    try:
        found = json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
