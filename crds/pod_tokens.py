"""Tokens that the controller gives to pods and the facade believes.

A token names one object (namespace, name, uid), what it is for, and until when,
signed with HMAC-SHA256 by a key that api and controller share. It is no session:
nothing is stored, and it opens only the calls of docs/protocol.md for that
object. Standard library only.
"""

import base64
import hashlib
import hmac
import json
from dataclasses import dataclass
from typing import Literal

TokenKind = Literal["run", "build", "upload"]
MAX_LENGTH = 2048


class TokenInvalid(Exception):
    """The token is malformed, of another key, or expired. The text says which, for our logs only."""


@dataclass(frozen=True)
class Token:
    """What a verified token says; `expires` in epoch seconds."""

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
    """A token for one object. The same arguments give the same token. Raises ValueError for an empty key."""
    if not key:
        raise ValueError("the token key is empty; set CREWYARD_TOKEN_KEY")
    body = _encode(json.dumps([kind, namespace, name, uid, expires], separators=(",", ":")).encode())
    return f"{body}.{_encode(_sign(key, body))}"


def verify(key: str, text: str, now: float) -> Token:
    """What `text` says, if `key` signed it and it has not expired at `now`. Raises TokenInvalid."""
    body, separator, signature = text.partition(".")
    if not key or not separator or len(text) > MAX_LENGTH or not text.isascii():
        raise TokenInvalid("malformed")
    # Compared as text: decoding would take more than one spelling for the same signature.
    if not hmac.compare_digest(signature.encode(), _encode(_sign(key, body)).encode()):
        raise TokenInvalid("signature")
    kind, namespace, name, uid, expires = json.loads(_decode(body))
    if now >= expires:
        raise TokenInvalid("expired")
    return Token(kind, namespace, name, uid, expires)
