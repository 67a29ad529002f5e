"""Tokens that the controller issues to pods and the API verifies.

A token contains one object (namespace, name, uid), its purpose and its expiry, signed with HMAC-SHA256 by a
key that API and controller share. It is stateless, and it authorizes only the calls of docs/protocol.md for
that object. It names no key: while the key is changed, each valid one is tried. Standard library only.
"""

import base64
import hashlib
import hmac
import json
from dataclasses import dataclass
from typing import Literal

TokenKind = Literal["run", "build", "upload", "warm", "builder"]
MAX_TOKEN_LENGTH = 2048
MIN_TOKEN_KEY_LENGTH = 16
MAX_OTHER_TOKEN_KEYS = 3


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


def parse_other_keys(text: str) -> tuple[str, ...]:
    """Return the keys of CREWYARD_OTHER_TOKEN_KEYS, separated by white space. Raises ValueError."""
    keys = tuple(text.split())
    if len(keys) > MAX_OTHER_TOKEN_KEYS:
        raise ValueError(f"at most {MAX_OTHER_TOKEN_KEYS} keys are allowed; remove the oldest")
    if any(len(key) < MIN_TOKEN_KEY_LENGTH for key in keys):
        raise ValueError(f"each key needs at least {MIN_TOKEN_KEY_LENGTH} characters")
    return keys


def _encode(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().replace("=", "")


def _decode(text: str) -> bytes:
    # The decoder ignores padding that is not needed.
    return base64.urlsafe_b64decode(text + "==")


def _sign(key: str, body: str) -> bytes:
    return hmac.new(key.encode(), body.encode(), hashlib.sha256).digest()


def mint(key: str, kind: TokenKind, namespace: str, name: str, uid: str, expires: int) -> str:
    """Return a token for one object; equal arguments give equal tokens. Raises ValueError without a key."""
    if not key:
        raise ValueError("the token key is empty; set CREWYARD_TOKEN_KEY")
    body = _encode(json.dumps([kind, namespace, name, uid, expires], separators=(",", ":")).encode())
    return f"{body}.{_encode(_sign(key, body))}"


def verify(keys: tuple[str, ...], text: str, now: float) -> PodToken:
    """Return the claims of `text`, signed by one of the keys, not expired at `now`. Raises TokenInvalid."""
    body, separator, signature = text.partition(".")
    if not all(keys) or not separator or len(text) > MAX_TOKEN_LENGTH or not text.isascii():
        raise TokenInvalid("malformed")
    # Compared as text: decoding would accept several spellings of one signature.
    valid = [hmac.compare_digest(signature.encode(), _encode(_sign(key, body)).encode()) for key in keys]
    if not any(valid):
        raise TokenInvalid("signature")
    kind, namespace, name, uid, expires = json.loads(_decode(body))
    if now >= expires:
        raise TokenInvalid("expired")
    return PodToken(kind, namespace, name, uid, expires)
