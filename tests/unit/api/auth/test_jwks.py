"""Keys of an issuer: when they are fetched, how long they are kept, which are used."""

import asyncio

import pytest
from aiohttp import web

from api.auth import jwks
from api.auth.jwks import MAX_STALE_SECONDS, MIN_REFRESH_SECONDS, REFRESH_SECONDS, IssuerKeys, parse_keys
from tests.unit.api.auth.issuer import public, rsa_key


class JwksClock:
    now = 0.0

    def __call__(self):
        return self.now


async def test_keys_are_refetched_when_stale_or_unknown_at_most_once_a_minute(issuer):
    clock = JwksClock()
    found = IssuerKeys(issuer.url, clock)
    assert await found.key("RS256", "one") is not None
    assert await found.key("ES256", "two") is not None
    assert await found.key("RS256", "two") is None and await found.key("HS256", "one") is None
    assert len(issuer.asked) == 2
    issuer.keys = [public(rsa_key(), "three")]
    assert await found.key("RS256", "three") is None
    clock.now = MIN_REFRESH_SECONDS
    await asyncio.gather(*(found.key("RS256", f"{n}") for n in range(20)))
    assert await found.key("RS256", "three") is not None and await found.key("RS256", "one") is None
    assert len(issuer.asked) == 4, "many unknown keys at once are one question"
    clock.now += REFRESH_SECONDS + 1
    assert await found.key("RS256", "three") is not None
    assert len(issuer.asked) == 6


async def test_keys_are_kept_for_a_day_while_the_issuer_is_unavailable(issuer):
    clock = JwksClock()
    found = IssuerKeys(issuer.url, clock)
    await found.key("RS256", "one")
    issuer.broken = web.Response(status=503)
    clock.now = MAX_STALE_SECONDS
    assert await found.key("RS256", "one") is not None
    clock.now += 1
    with pytest.raises(Exception, match="cannot be reached"):
        await found.key("RS256", "one")


@pytest.mark.parametrize(
    "answer",
    [
        web.Response(body=b" " * (jwks.MAX_RESPONSE_BYTES + 1)),
        web.Response(text="[]"),
        web.Response(text="[" * 100_000),
        web.Response(status=302, headers={"Location": "/keys"}),
    ],
    ids=["large", "a list", "deep", "a redirect"],
)
async def test_issuer_responses_are_bounded(issuer, answer):
    issuer.broken = answer
    with pytest.raises(Exception, match="cannot be reached"):
        await IssuerKeys(issuer.url).key("RS256", "one")


@pytest.mark.parametrize("about", [{"issuer": "https://other.example"}, {"jwks_uri": "file:///etc/passwd"}])
async def test_discovery_of_another_issuer_is_rejected(issuer, about):
    issuer.about = about
    with pytest.raises(Exception, match="cannot be reached"):
        await IssuerKeys(issuer.url).key("RS256", "one")


def test_unusable_keys_of_a_set_are_skipped():
    listed = [
        public(rsa_key(), "a"),
        public(rsa_key(2048, 1), "a"),
        public(rsa_key(1024), "small"),
        public(rsa_key(), "encrypts", use="enc"),
        public(rsa_key(), "other", alg="RS512"),
        {**public(rsa_key(), "broken"), "n": "!"},
        {"kty": "oct", "kid": "secret", "k": "c2VjcmV0"},
        {"kty": "RSA"}, None, 1,
    ]  # fmt: skip
    found = parse_keys({"keys": listed})
    assert list(found) == [("RS256", "a")]
    assert found["RS256", "a"].public_numbers() == rsa_key().public_key().public_numbers()
    with pytest.raises(ValueError, match="no keys"):
        parse_keys({"keys": {}})
