"""Public keys of an OpenID Connect issuer, found by discovery.

Called by `api.auth.oidc` and `api.auth.sign_in`.

Fetches the keys on first use, and again if they are stale or a token names an unknown key, at
most once a minute; keeps them for a day while the issuer is unavailable. All responses are
limited in size.
"""

import asyncio
import json
import math
import time
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlsplit

import aiohttp
import jwt
import structlog
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey

from api import errors

ALGORITHMS: Mapping[str, tuple[str, str]] = {"RS256": ("kty", "RSA"), "ES256": ("crv", "P-256")}
"""Accepted algorithm → required field and value of its JWK."""
MIN_REFRESH_SECONDS = 60.0
REFRESH_SECONDS = 900.0
MAX_STALE_SECONDS = 86_400.0
FAILURE_BACKOFF_SECONDS = 5.0
"""Back-off after a failed fetch; doubles up to `MIN_REFRESH_SECONDS`."""
REQUEST_TIMEOUT_SECONDS = 2.0
MAX_RESPONSE_BYTES = 256 * 1024
MAX_KEYS = 100
RSA_KEY_BITS = range(2048, 8193)
REQUEST_FAILURES = (aiohttp.ClientError, TimeoutError, OSError, ValueError, RecursionError)
"""What a request to an issuer and the parse of its response raise."""
PublicKeys = Mapping[tuple[str, str], Any]
_log = structlog.get_logger("api")


class IssuerKeys:
    """Public keys of one issuer."""

    def __init__(self, issuer: str, clock: Callable[[], float] = time.monotonic) -> None:
        self.issuer = issuer
        self._clock = clock
        self._keys: PublicKeys = {}
        self._read_at: float | None = None
        self._not_before = -math.inf
        self._backoff = FAILURE_BACKOFF_SECONDS
        self._lock = asyncio.Lock()

    async def key(self, algorithm: str, key_id: str) -> Any | None:
        """Return the public key with this algorithm and id, or None.

        While one task fetches stale keys, the others do not wait for a key that is known.
        Raises a 503 if no keys were fetched within a day and the issuer is unavailable.
        """
        if algorithm not in ALGORITHMS or not key_id:
            return None
        name = (algorithm, key_id)
        usable = name in self._keys and not self._expired()
        if self._should_read(name) and not (usable and self._lock.locked()):
            async with self._lock:
                if self._should_read(name):  # Another task may have fetched them meanwhile.
                    await self._read()
        if self._expired():
            raise errors.unavailable("the issuer of the token cannot be reached right now; try again shortly")
        return self._keys.get(name)

    def _expired(self) -> bool:
        return self._read_at is None or self._clock() - self._read_at > MAX_STALE_SECONDS

    def _should_read(self, name: tuple[str, str]) -> bool:
        now = self._clock()
        stale = self._read_at is None or now - self._read_at > REFRESH_SECONDS
        return now >= self._not_before and (stale or name not in self._keys)

    async def _read(self) -> None:
        started = self._clock()
        try:
            timeout = aiohttp.ClientTimeout(REQUEST_TIMEOUT_SECONDS)
            async with aiohttp.ClientSession(timeout=timeout, trust_env=True) as session:
                discovery = await read_discovery(session, self.issuer)
                jwks_uri = str(discovery.get("jwks_uri"))
                if urlsplit(jwks_uri).scheme != urlsplit(self.issuer).scheme:
                    raise ValueError("the jwks_uri has another scheme")
                keys = parse_keys(await _json(session, jwks_uri))
        except REQUEST_FAILURES as error:
            _log.warning(
                "issuer_unreadable", issuer=self.issuer, error=f"{type(error).__name__}: {error}"[:300]
            )
            self._not_before = started + self._backoff
            self._backoff = min(2 * self._backoff, MIN_REFRESH_SECONDS)
            return
        self._keys, self._read_at = keys, started
        self._not_before, self._backoff = started + MIN_REFRESH_SECONDS, FAILURE_BACKOFF_SECONDS


async def read_discovery(session: aiohttp.ClientSession, issuer: str) -> Mapping[str, Any]:
    """Return the discovery document of an issuer. Raises ValueError if it is of another one."""
    discovery = await _json(session, f"{issuer.removesuffix('/')}/.well-known/openid-configuration")
    if discovery.get("issuer") != issuer:
        raise ValueError(f"the discovery document names the issuer {str(discovery.get('issuer'))[:200]!r}")
    return discovery


async def _json(session: aiohttp.ClientSession, url: str) -> Mapping[str, Any]:
    async with session.get(url, allow_redirects=False) as response:
        if response.status != 200:
            raise ValueError(f"{url[:300]} returned {response.status}")
        document = await parse_response(response)
    if not isinstance(document, dict):
        raise ValueError(f"{url[:300]} did not return a JSON object")
    return document


async def parse_response(response: aiohttp.ClientResponse) -> Any:
    """Return the JSON of an issuer's response, read to its end. Raises ValueError if it is too large."""
    raw = bytearray()
    async for chunk in response.content.iter_any():
        raw += chunk
        if len(raw) > MAX_RESPONSE_BYTES:
            raise ValueError(f"{str(response.url)[:300]} returned more than {MAX_RESPONSE_BYTES} bytes")
    return json.loads(raw)


def parse_keys(document: Mapping[str, Any]) -> PublicKeys:
    """Return (algorithm, key id) → public key of a key set; skip unusable keys. Pure.

    Raises ValueError if there is no list of keys.
    """
    listed, keys = document.get("keys"), dict[tuple[str, str], Any]()
    if not isinstance(listed, list):
        raise ValueError("the key set has no keys")
    for jwk in listed[:MAX_KEYS]:
        if isinstance(jwk, dict) and isinstance(jwk.get("kid"), str) and jwk.get("use", "sig") == "sig":
            for algorithm in ALGORITHMS:
                key = _public_key(jwk, algorithm)
                if key is not None:
                    keys.setdefault((algorithm, jwk["kid"]), key)
    return keys


def _public_key(jwk: dict[str, Any], algorithm: str) -> Any | None:
    field, value = ALGORITHMS[algorithm]
    if jwk.get(field) != value or jwk.get("alg", algorithm) != algorithm:
        return None
    try:
        key = jwt.PyJWK(jwk, algorithm).key
    except (jwt.PyJWTError, ValueError, TypeError):
        return None
    return None if isinstance(key, RSAPublicKey) and key.key_size not in RSA_KEY_BITS else key
