"""API keys: generation, format and verification. Standard library only.

Called by the API's authentication and by `dev`, which generates the first admin key. A key has the form
`crw_<id>_<secret><checksum>`: the id finds the record, the secret has 190 random bits, the checksum detects a
mistyped key before any lookup (like GitHub's tokens).
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
    """A newly generated key: `text` is shown once, `key_id` and `hash` are stored."""

    text: str
    key_id: str
    hash: str


def _random_letters(count: int) -> str:
    return "".join(secrets.choice(_ALPHABET) for _ in range(count))


def _checksum(body: str) -> str:
    value = zlib.crc32(body.encode())
    letters = []
    for _ in range(_CHECKSUM_LENGTH):
        value, index = divmod(value, len(_ALPHABET))
        letters.append(_ALPHABET[index])
    return "".join(letters)


def hash_of(text: str) -> str:
    """Return the stored hash of a key. Plain SHA-256 suffices for a random secret of 190 bits."""
    return hashlib.sha256(text.encode()).hexdigest()


def generate() -> ApiKey:
    """Generate a key from the system's randomness."""
    key_id = _random_letters(_ID_LENGTH)
    body = f"{key_id}_{_random_letters(_SECRET_LENGTH)}"
    text = PREFIX + body + _checksum(body)
    return ApiKey(text=text, key_id=key_id, hash=hash_of(text))


def key_id_of(text: str) -> str | None:
    """Return the id in a well-formed key, or None where prefix, form or checksum is wrong."""
    if not text.startswith(PREFIX) or not text.isascii():
        return None
    body, checksum = text[len(PREFIX) : -_CHECKSUM_LENGTH], text[-_CHECKSUM_LENGTH:]
    key_id, separator, secret = body.partition("_")
    if not separator or len(key_id) != _ID_LENGTH or len(secret) != _SECRET_LENGTH:
        return None
    return key_id if hmac.compare_digest(_checksum(body).encode(), checksum.encode()) else None


def matches(text: str, stored_hash: str) -> bool:
    """Return whether `text` is the key of `stored_hash`, in constant time."""
    return hmac.compare_digest(hash_of(text), stored_hash)
