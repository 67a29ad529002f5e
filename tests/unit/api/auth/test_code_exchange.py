"""Responses of an OpenID provider's token endpoint; tests/browser/test_sign_in.py signs in for real."""

import asyncio

import jwt
import pytest
from aiohttp import web

from api.auth import jwks
from api.auth.sign_in.code_exchange import CodeExchange
from api.auth.sign_in.settings import SignInSettings
from api.auth.unverified import parse_unverified
from api.errors import HttpApiError
from tests.unit.api.auth.issuer import Issuer, rsa_key, wait_patiently


@pytest.fixture
async def exchange(monkeypatch):
    """Return a function that makes the exchange at a provider with this token endpoint."""
    wait_patiently(monkeypatch)
    providers = []

    async def start(token) -> CodeExchange:
        provider = Issuer()
        provider.server.app.router.add_post("/token", token)
        await provider.start()
        provider.about = {"token_endpoint": f"{provider.url}/token"}
        providers.append(provider)
        return CodeExchange(SignInSettings(provider.url, "crewyard", ()), "http://crewyard.example/console/")

    yield start
    for provider in providers:
        await provider.server.close()


async def test_token_may_arrive_in_pieces(exchange):
    async def token(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        for piece in (b'{"id_token":', b' "a.b.c"}'):
            await response.write(piece)
            await asyncio.sleep(0.1)
        return response

    assert await (await exchange(token)).id_token("code", "verifier") == "a.b.c"


async def test_token_response_is_bounded(exchange):
    async def token(_: web.Request) -> web.Response:
        return web.Response(body=b'{"id_token": "a.b.c"}' + b" " * jwks.MAX_RESPONSE_BYTES)

    with pytest.raises(HttpApiError, match="cannot be reached"):
        await (await exchange(token)).id_token("code", "verifier")


@pytest.mark.parametrize(("groups", "allowed"), [(120, True), (150, False)])
async def test_a_token_with_too_many_groups_is_named(exchange, groups, allowed):
    listed = [f"{number:08}-0000-4000-8000-000000000000" for number in range(groups)]
    claims = {"iss": "https://id.example.com", "aud": "crewyard", "sub": "x" * 40, "groups": listed}
    text = jwt.encode(claims, rsa_key(), "RS256", headers={"kid": "x" * 40})

    async def token(_: web.Request) -> web.Response:
        return web.json_response({"id_token": text})

    made = await exchange(token)
    if allowed:
        assert parse_unverified(await made.id_token("code", "verifier")) is not None
    else:
        with pytest.raises(HttpApiError, match="limit the groups"):
            await made.id_token("code", "verifier")
