"""API keys: how they are drawn, written and checked. Standard library only.

Called by the facade's authentication and by `dev`, which draws the first
admin key. A key reads `crw_<id>_<secret><checksum>`: the id finds the record,
the secret has 190 random bits, the checksum tells a mistyped key from an
unknown one before anything is looked up (as GitHub's tokens do).
"""

import hashlib
import hmac
import secrets
import zlib
from dataclasses import dataclass

PREFIX = "crw_"
_ALPHABET = "0123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
_ID_LENGTH = 10
_SECRET_LENGTH = 33
_CHECKSUM_LENGTH = 6


@dataclass(frozen=True)
class ApiKey:
    """A freshly drawn key: `text` is shown once, `key_id` and `hash` are kept."""

    text: str
    key_id: str
    hash: str


def _letters(count: int) -> str:
    return "".join(secrets.choice(_ALPHABET) for _ in range(count))


def _checksum(body: str) -> str:
    value = zlib.crc32(body.encode())
    letters = []
    for _ in range(_CHECKSUM_LENGTH):
        value, index = divmod(value, len(_ALPHABET))
        letters.append(_ALPHABET[index])
    return "".join(letters)


def hash_of(text: str) -> str:
    """The form in which a key is stored. A plain SHA-256 is enough for a random secret of 190 bits."""
    return hashlib.sha256(text.encode()).hexdigest()


def draw() -> ApiKey:
    """A new key from the system's randomness."""
    key_id = _letters(_ID_LENGTH)
    body = f"{key_id}_{_letters(_SECRET_LENGTH)}"
    text = PREFIX + body + _checksum(body)
    return ApiKey(text=text, key_id=key_id, hash=hash_of(text))


def key_id_of(text: str) -> str | None:
    """The id within a well-formed key, or None where prefix, shape or checksum do not fit."""
    if not text.startswith(PREFIX) or not text.isascii():
        return None
    body, checksum = text[len(PREFIX) : -_CHECKSUM_LENGTH], text[-_CHECKSUM_LENGTH:]
    key_id, separator, secret = body.partition("_")
    if not separator or len(key_id) != _ID_LENGTH or len(secret) != _SECRET_LENGTH:
        return None
    return key_id if hmac.compare_digest(_checksum(body).encode(), checksum.encode()) else None


def matches(text: str, stored_hash: str) -> bool:
    """Whether `text` is the key behind `stored_hash`, in constant time."""
    return hmac.compare_digest(hash_of(text), stored_hash)
