"""A token issuer on loopback, like GitHub: discovery, key set and signed tokens."""

import asyncio
import functools
import json
from datetime import datetime
from typing import Any

import jwt
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from cryptography.hazmat.primitives.asymmetric import ec, rsa

AUDIENCE = "http://crewyard.example"
PATIENT_SECONDS = 60.0
"""Timeout of requests to the issuer: a busy machine may take longer than the service waits."""
REPOSITORY = "octo/tides"


@functools.cache
def rsa_key(bits: int = 2048, number: int = 0) -> rsa.RSAPrivateKey:
    """A key pair, made once."""
    return rsa.generate_private_key(65537, bits)


@functools.cache
def ec_key() -> ec.EllipticCurvePrivateKey:
    """A key pair, made once."""
    return ec.generate_private_key(ec.SECP256R1())


def public(key: Any, kid: str, **more: Any) -> dict[str, Any]:
    """Return a key as an entry of a key set."""
    algorithm = (
        jwt.algorithms.RSAAlgorithm if isinstance(key, rsa.RSAPrivateKey) else jwt.algorithms.ECAlgorithm
    )
    return {**json.loads(algorithm.to_jwk(key.public_key())), "kid": kid, "use": "sig", **more}


def wait_patiently(monkeypatch: pytest.MonkeyPatch) -> None:
    """Raise the timeouts of requests to an issuer: the tests check responses, not latency."""
    for module in ("api.auth.jwks", "api.auth.sign_in.code_exchange"):
        monkeypatch.setattr(f"{module}.REQUEST_TIMEOUT_SECONDS", PATIENT_SECONDS)


class Issuer:
    """An issuer that answers while it is `answering`; `asked` lists the requested paths.

    `about` changes its discovery; `broken` are the fields of the response to every request.
    """

    def __init__(self) -> None:
        self.keys: list[dict[str, Any]] = [public(rsa_key(), "one"), public(ec_key(), "two")]
        self.about: dict[str, Any] = {}
        self.broken: dict[str, Any] | None = None
        self.asked: list[str] = []
        self.answering = asyncio.Event()
        self.answering.set()
        app = web.Application()
        app.router.add_get("/.well-known/openid-configuration", self._discovery)
        app.router.add_get("/keys", self._keys)
        self.server = TestServer(app)

    async def start(self) -> None:
        """Start to listen."""
        await self.server.start_server()

    @property
    def url(self) -> str:
        """The issuer name, which is its URL."""
        return str(self.server.make_url("")).rstrip("/")

    async def _discovery(self, request: web.Request) -> web.Response:
        self.asked.append(request.path)
        return await self._answer({"issuer": self.url, "jwks_uri": f"{self.url}/keys", **self.about})

    async def _keys(self, request: web.Request) -> web.Response:
        self.asked.append(request.path)
        return await self._answer({"keys": self.keys})

    async def _answer(self, document: object) -> web.Response:
        await self.answering.wait()
        return web.json_response(document) if self.broken is None else web.Response(**self.broken)

    def claims(self, now: datetime, **more: Any) -> dict[str, Any]:
        """Return the claims of GitHub for a push to main; None removes a claim."""
        at = int(now.timestamp())
        found = {
            "iss": self.url,
            "aud": AUDIENCE,
            "sub": f"repo:{REPOSITORY}:ref:refs/heads/main",
            "repository": REPOSITORY,
            "ref": "refs/heads/main",
            "event_name": "push",
            "iat": at,
            "nbf": at,
            "exp": at + 300,
            **more,
        }
        return {name: value for name, value in found.items() if value is not None}

    def token(
        self, now: datetime, key: Any = None, kid: str = "one", algorithm: str = "RS256", **more: Any
    ) -> str:
        """Return a signed token."""
        return jwt.encode(self.claims(now, **more), key or rsa_key(), algorithm, headers={"kid": kid})
