"""The keys of an issuer, found by OpenID Connect's discovery. Called by `api.auth.oidc`.

They are read at the first need, again when they are old or when a token names one that
is unknown, at most once a minute, and kept for a day while the issuer is away.
Everything that is read is bounded.
"""

import asyncio
import json
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
"""What is accepted → what such a key must be."""
AGAIN_SECONDS = 60.0
OLD_SECONDS = 900.0
KEPT_SECONDS = 86_400.0
FAILED_SECONDS = 5.0
"""How long nobody asks again after a failure; it doubles up to `AGAIN_SECONDS`."""
READ_SECONDS = 2.0
READ_BYTES = 256 * 1024
MAX_KEYS = 100
RSA_BITS = range(2048, 8193)
Keys = Mapping[tuple[str, str], Any]
_log = structlog.get_logger("api")


class Signers:
    """The public keys of one issuer."""

    def __init__(self, issuer: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._issuer = issuer
        self._clock = clock
        self._keys: Keys = {}
        self._read_at: float | None = None
        self._not_before = float("-inf")
        self._pause = FAILED_SECONDS
        self._turn = asyncio.Lock()

    async def key(self, algorithm: str, signer: str) -> Any | None:
        """The public key of that name and algorithm, or None.

        Raises the 503 where the issuer's keys have never been read, or a day ago, and cannot be now.
        """
        if algorithm not in ALGORITHMS or not signer:
            return None
        wanted = (algorithm, signer)
        if self._should_read(wanted):
            async with self._turn:
                if self._should_read(wanted):  # Not where somebody else just did.
                    await self._read()
        if self._read_at is None or self._clock() - self._read_at > KEPT_SECONDS:
            raise errors.unavailable("the issuer of the token cannot be reached right now; try again shortly")
        return self._keys.get(wanted)

    def _should_read(self, wanted: tuple[str, str]) -> bool:
        now = self._clock()
        old = self._read_at is None or now - self._read_at > OLD_SECONDS
        return now >= self._not_before and (old or wanted not in self._keys)

    async def _read(self) -> None:
        begun = self._clock()
        try:
            async with (
                asyncio.timeout(2 * READ_SECONDS),
                aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(READ_SECONDS), trust_env=True) as session,
            ):
                about = await _json(session, f"{self._issuer.rstrip('/')}/.well-known/openid-configuration")
                if about.get("issuer") != self._issuer:
                    raise ValueError(f"the issuer calls itself {str(about.get('issuer'))[:200]!r}")
                place = str(about.get("jwks_uri"))
                if urlsplit(place).scheme != urlsplit(self._issuer).scheme:
                    raise ValueError("its jwks_uri is of another scheme")
                found = parse_keys(await _json(session, place))
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError, RecursionError) as error:
            _log.warning(
                "issuer_unreadable", issuer=self._issuer, error=f"{type(error).__name__}: {error}"[:300]
            )
            self._not_before = begun + self._pause
            self._pause = min(2 * self._pause, AGAIN_SECONDS)
            return
        self._keys, self._read_at = found, begun
        self._not_before, self._pause = begun + AGAIN_SECONDS, FAILED_SECONDS


async def _json(session: aiohttp.ClientSession, url: str) -> Mapping[str, Any]:
    async with session.get(url, allow_redirects=False) as answer:
        if answer.status != 200:
            raise ValueError(f"{url[:300]} answers {answer.status}")
        raw = bytearray()
        async for chunk in answer.content.iter_chunked(64 * 1024):
            raw += chunk
            if len(raw) > READ_BYTES:
                raise ValueError(f"{url[:300]} answers more than {READ_BYTES} bytes")
    found = json.loads(raw)
    if not isinstance(found, dict):
        raise ValueError(f"{url[:300]} answers no object")
    return found


def parse_keys(document: Mapping[str, Any]) -> Keys:
    """Algorithm and id → public key, of a key set; what cannot be used is left out. Pure.

    Raises ValueError where there is no list of keys.
    """
    listed, found = document.get("keys"), dict[tuple[str, str], Any]()
    if not isinstance(listed, list):
        raise ValueError("the key set has no keys")
    for one in listed[:MAX_KEYS]:
        if not isinstance(one, dict) or not isinstance(one.get("kid"), str) or one.get("use", "sig") != "sig":
            continue
        for algorithm, (field, value) in ALGORITHMS.items():
            if one.get(field) != value or one.get("alg", algorithm) != algorithm:
                continue
            try:
                key = jwt.PyJWK(one, algorithm).key
            except (jwt.PyJWTError, ValueError, TypeError):
                continue
            if isinstance(key, RSAPublicKey) and key.key_size not in RSA_BITS:
                continue
            found.setdefault((algorithm, one["kid"]), key)
    return found
