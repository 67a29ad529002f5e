"""Tokens that the controller issues to pods and the API verifies.

A token contains one object (namespace, name, uid), its purpose and its expiry, signed with HMAC-SHA256 by a
key that API and controller share. It is stateless, and it authorizes only the calls of docs/protocol.md for
that object. Standard library only.
"""

import base64
import hashlib
import hmac
import json
from dataclasses import dataclass
from typing import Literal

TokenKind = Literal["run", "build", "upload", "warm"]
MAX_TOKEN_LENGTH = 2048


class TokenInvalid(Exception):
    """The token is malformed, has a wrong signature, or is expired. The text says which, for logs only."""


@dataclass(frozen=True)
class PodToken:
    """Claims of a verified token; `expires` in epoch seconds."""

    kind: str
    namespace: str
    name: str
    uid: str
    expires: int


def _encode(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _decode(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def _sign(key: str, body: str) -> bytes:
    return hmac.new(key.encode(), body.encode(), hashlib.sha256).digest()


def mint(key: str, kind: TokenKind, namespace: str, name: str, uid: str, expires: int) -> str:
    """Return a token for one object; equal arguments give equal tokens. Raises ValueError without a key."""
    if not key:
        raise ValueError("the token key is empty; set CREWYARD_TOKEN_KEY")
    body = _encode(json.dumps([kind, namespace, name, uid, expires], separators=(",", ":")).encode())
    return f"{body}.{_encode(_sign(key, body))}"


def verify(key: str, text: str, now: float) -> PodToken:
    """Return the claims of `text`, signed by `key` and not expired at `now`. Raises TokenInvalid."""
    body, separator, signature = text.partition(".")
    if not key or not separator or len(text) > MAX_TOKEN_LENGTH or not text.isascii():
        raise TokenInvalid("malformed")
    # Compared as text: decoding would accept several spellings of one signature.
    if not hmac.compare_digest(signature.encode(), _encode(_sign(key, body)).encode()):
        raise TokenInvalid("signature")
    kind, namespace, name, uid, expires = json.loads(_decode(body))
    if now >= expires:
        raise TokenInvalid("expired")
    return PodToken(kind, namespace, name, uid, expires)
