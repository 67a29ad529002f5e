"""Keys of an issuer: when they are fetched, how long they are kept, which are used."""

import asyncio
import contextlib
import json

import pytest
from structlog.testing import capture_logs

from api.auth import jwks
from api.auth.jwks import (
    MAX_KEYS,
    MAX_STALE_SECONDS,
    MIN_REFRESH_SECONDS,
    REFRESH_SECONDS,
    IssuerKeys,
    parse_keys,
)
from api.errors import HttpApiError
from tests.unit.api.auth.issuer import Issuer, ec_key, public, rsa_key


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
    clock.now += MIN_REFRESH_SECONDS
    assert await found.key("HS256", "one") is None and await found.key("RS256", "") is None
    assert len(issuer.asked) == 4, "no issuer has such keys"
    for seconds, asked in ((REFRESH_SECONDS, 4), (REFRESH_SECONDS + 1, 6)):
        clock.now = MIN_REFRESH_SECONDS + seconds
        assert await found.key("RS256", "three") is not None
        assert len(issuer.asked) == asked


async def test_keys_are_kept_for_a_day_while_the_issuer_is_unavailable(issuer):
    clock = JwksClock()
    found = IssuerKeys(issuer.url, clock)
    clock.now = 1000.0
    await found.key("RS256", "one")
    issuer.broken = {"status": 503}
    clock.now += MAX_STALE_SECONDS
    assert await found.key("RS256", "one") is not None
    clock.now += 1
    with pytest.raises(HttpApiError, match="cannot be reached"):
        await found.key("RS256", "one")


async def test_known_keys_do_not_wait_while_another_task_fetches(issuer):
    clock = JwksClock()
    found = IssuerKeys(issuer.url, clock)
    assert await found.key("RS256", "one") is not None
    issuer.answering.clear()
    clock.now = REFRESH_SECONDS + 1
    first = asyncio.create_task(found.key("RS256", "one"))
    async with asyncio.timeout(60):
        while len(issuer.asked) < 3:
            await asyncio.sleep(0.01)
    assert await asyncio.wait_for(found.key("RS256", "one"), 60) is not None
    clock.now = MAX_STALE_SECONDS + 1
    unknown, expired = (asyncio.create_task(found.key("RS256", key_id)) for key_id in ("new", "one"))
    assert not first.done(), "the test ended after the fetch"
    issuer.answering.set()
    assert await first is not None and await unknown is None and await expired is not None
    assert len(issuer.asked) == 6, "the first fetch, and that of the expired keys"


async def test_failing_issuer_is_asked_less_and_less_often(issuer):
    clock = JwksClock()
    found = IssuerKeys(issuer.url, clock)

    async def asks_of_a_second_before_and_then(seconds):
        asked = []
        for at in (seconds - 1, seconds):
            before, clock.now = len(issuer.asked), at
            with contextlib.suppress(HttpApiError):
                await found.key("RS256", "one")
            asked.append(len(issuer.asked) - before)
        return asked

    issuer.broken = {"status": 503}
    clock.now = 1000.0
    with pytest.raises(HttpApiError, match="the issuer of the token cannot be reached") as refused:
        await found.key("RS256", "one")
    assert refused.value.status == 503
    for at in (1005, 1015, 1035, 1075, 1135):
        assert await asks_of_a_second_before_and_then(at) == [0, 1]
    issuer.broken = None
    assert await asks_of_a_second_before_and_then(1195) == [0, 2]
    issuer.broken = {"status": 503}
    clock.now = 1196 + REFRESH_SECONDS
    assert await found.key("RS256", "one") is not None
    assert await asks_of_a_second_before_and_then(clock.now + 5) == [0, 1], "the wait begins again"


@pytest.mark.parametrize(
    "answer",
    [
        {"body": b" " * (jwks.MAX_RESPONSE_BYTES + 1)},
        {"text": "[]"},
        {"text": "[" * 100_000},
    ],
    ids=["large", "a list", "deep"],
)
async def test_issuer_responses_are_bounded(issuer, answer):
    issuer.broken = answer
    with pytest.raises(HttpApiError, match="cannot be reached"):
        await IssuerKeys(issuer.url).key("RS256", "one")


async def test_issuer_response_may_have_the_greatest_size(issuer):
    issuer.about = {"more": ""}
    document = json.dumps({"issuer": issuer.url, "jwks_uri": f"{issuer.url}/keys", **issuer.about})
    issuer.about = {"more": "x" * (jwks.MAX_RESPONSE_BYTES - len(document))}
    assert await IssuerKeys(issuer.url).key("RS256", "one") is not None


async def test_redirects_of_an_issuer_are_not_followed(issuer):
    other = Issuer()
    await other.start()
    other.about = {"issuer": issuer.url}
    location = f"{other.url}/.well-known/openid-configuration"
    issuer.broken = {"status": 302, "headers": {"Location": location}}
    with pytest.raises(HttpApiError, match="cannot be reached"):
        await IssuerKeys(issuer.url).key("RS256", "one")
    assert other.asked == []
    await other.server.close()


async def test_slow_issuer_is_unavailable_in_time(issuer, monkeypatch):
    monkeypatch.setattr(jwks, "REQUEST_TIMEOUT_SECONDS", 0.1)
    issuer.answering.clear()
    with pytest.raises(HttpApiError, match="cannot be reached"):
        await asyncio.wait_for(IssuerKeys(issuer.url).key("RS256", "one"), 10)


async def test_issuer_is_reached_through_the_proxy_of_the_environment(issuer, monkeypatch):
    monkeypatch.setenv("http_proxy", issuer.url)
    issuer.about = {"issuer": "http://id.example/", "jwks_uri": "http://id.example/keys"}
    assert await IssuerKeys("http://id.example/").key("RS256", "one") is not None
    assert issuer.asked == ["/.well-known/openid-configuration", "/keys"]


@pytest.mark.parametrize(
    ("about", "reason"),
    [
        ({"issuer": "https://other.example"}, "names the issuer 'https://other.example'"),
        ({"issuer": "\n" * 201}, "names the issuer '\\n"),
        ({"jwks_uri": "file:///etc/passwd"}, "the jwks_uri has another scheme"),
        ({"jwks_uri": None}, "the jwks_uri has another scheme"),
    ],
)
async def test_discovery_of_another_issuer_is_rejected(issuer, about, reason):
    issuer.about = about
    with capture_logs() as logged, pytest.raises(HttpApiError, match="cannot be reached"):
        await IssuerKeys(issuer.url).key("RS256", "one")
    error = logged[0].pop("error")
    assert logged == [{"event": "issuer_unreadable", "issuer": issuer.url, "log_level": "warning"}]
    assert error.startswith("ValueError: ") and reason in error
    assert len(error) <= 300
    assert ("\\n" not in error) or len(error) == 300


@pytest.mark.parametrize(
    "unusable",
    [
        public(rsa_key(1024), "small"),
        public(rsa_key(), "encrypts", use="enc"),
        public(rsa_key(), "other", alg="RS512"),
        {**public(rsa_key(), "broken"), "n": "!"},
        {**public(rsa_key(), "unnamed"), "kid": 1},
        {**public(ec_key(), "other"), "crv": "P-384"},
        {"kty": "oct", "kid": "secret", "k": "c2VjcmV0"},
        {"kty": "RSA"},
        None,
        1,
    ],
    ids=lambda jwk: str(jwk and isinstance(jwk, dict) and jwk.get("kid")),
)
def test_unusable_keys_of_a_set_are_skipped(unusable):
    good, again = public(rsa_key(), "a", alg="RS256"), public(rsa_key(2048, 1), "a")
    elliptic = {name: value for name, value in public(ec_key(), "a").items() if name != "use"}
    assert numbers({"keys": [unusable, good, again, elliptic]}) == {
        ("RS256", "a"): rsa_key().public_key().public_numbers(),
        ("ES256", "a"): ec_key().public_key().public_numbers(),
    }


def test_key_is_used_for_the_algorithm_of_its_kind_alone():
    mixed = {**public(rsa_key(), "mixed"), "crv": "P-256"}
    assert numbers({"keys": [mixed]}) == {("RS256", "mixed"): rsa_key().public_key().public_numbers()}


def numbers(document):
    return {name: key.public_numbers() for name, key in parse_keys(document).items()}


def test_so_many_keys_of_a_set_are_used():
    listed = [public(rsa_key(), f"{number}") for number in range(MAX_KEYS + 1)]
    assert set(numbers({"keys": listed})) == {("RS256", f"{number}") for number in range(MAX_KEYS)}
    with pytest.raises(ValueError, match="no keys"):
        parse_keys({"keys": {}})
