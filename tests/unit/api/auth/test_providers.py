"""Token handling without network: settings, parsing, caches and grants."""

import asyncio
import gc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from api.auth import workflows
from api.auth.jwks import parse_keys
from api.auth.oidc import verify
from api.auth.scopes import Grants
from api.auth.ttl_cache import TtlCache
from api.auth.unverified import parse_unverified
from api.config import ApiConfigError, parse
from tests.unit.api.auth.issuer import AUDIENCE, Issuer, rsa_key
from tests.unit.api.conftest import NOW

BASE = {"CREWYARD_TOKEN_KEY": "0" * 32, "CREWYARD_PUBLIC_URL": "https://crewyard.example/"}
UNHURRIED = settings(max_examples=60, deadline=None)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=9),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["repository", "ref", "scopes", "keys", "kid", "kty", "n", "e", "x"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


def test_default_identity_settings():
    found = parse(BASE).identity
    assert (found.kubernetes_audience, found.oidc_issuer) == ("crewyard", None)
    assert found.oidc_audience == "https://crewyard.example"
    assert parse(BASE).rate_limit_url is None


def test_all_identity_settings():
    more = {
        "CREWYARD_KUBERNETES_TOKENS": "Off",
        "CREWYARD_OIDC_ISSUER": "https://token.actions.githubusercontent.com",
        "CREWYARD_OIDC_AUDIENCE": "testbed",
        "CREWYARD_RATE_LIMIT_URL": "valkey://valkey",
    }
    found = parse({**BASE, **more})
    assert found.identity.kubernetes_audience is None
    assert found.identity.oidc_issuer == more["CREWYARD_OIDC_ISSUER"]
    assert (found.identity.oidc_audience, found.rate_limit_url) == ("testbed", "valkey://valkey")
    assert "valkey" not in repr(found), "it may have a password in it"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("CREWYARD_KUBERNETES_TOKENS", "yes"),
        ("CREWYARD_TOKEN_AUDIENCE", "two words"),
        ("CREWYARD_OIDC_AUDIENCE", "a\n"),
        ("CREWYARD_OIDC_ISSUER", "http://issuer.example"),
        ("CREWYARD_OIDC_ISSUER", "issuer.example"),
        ("CREWYARD_OIDC_ISSUER", "https://issuer.example/?a=b"),
        ("CREWYARD_OIDC_ISSUER", "https://[issuer"),
        ("CREWYARD_RATE_LIMIT_URL", "memcached://x"),
    ],
)
def test_invalid_setting_is_named(name, value):
    with pytest.raises(ApiConfigError, match=name):
        parse({**BASE, name: value})


@UNHURRIED
@given(st.text(max_size=200) | st.lists(st.text("abcXYZ019-_", max_size=90), max_size=4).map(".".join))
def test_parse_unverified_accepts_any_text(text):
    parse_unverified(text)


@UNHURRIED
@given(JSON, JSON)
def test_matching_tolerates_any_spec_and_claims(spec, claims):
    workflow = workflows.of_claims(claims if isinstance(claims, dict) else {})
    found = workflows.entries("tides", spec)
    if workflow is not None:
        workflows.grants(found, workflow)


@UNHURRIED
@given(JSON)
def test_parse_keys_tolerates_any_key_set(found):
    try:
        parse_keys({"keys": found})
    except ValueError as error:
        assert "no keys" in str(error)


@UNHURRIED
@given(st.data())
def test_token_with_a_changed_letter_is_invalid(data):
    token = jwt_of()
    place = data.draw(st.integers(0, len(token) - 1))
    letter = data.draw(st.sampled_from("AZaz09-_."))
    changed = token[:place] + letter + token[place + 1 :]
    public = rsa_key().public_key()
    good = verify(token, public, "RS256", "https://issuer.example", AUDIENCE)
    found = verify(changed, public, "RS256", "https://issuer.example", AUDIENCE)
    assert good is not None
    # The last letter of a part has unused bits.
    assert found is None or found == good


def jwt_of():
    return Issuer.token(StaticIssuer(), NOW, iss="https://issuer.example")


class StaticIssuer:
    """An issuer without a server."""

    url = "https://issuer.example"
    claims = Issuer.claims


ANY = frozenset({"read", "run"})


@pytest.mark.parametrize(
    ("grants", "scope", "project", "expected"),
    [
        (Grants(ANY), "run", "a", True),
        (Grants(ANY), "deploy", "a", False),
        (Grants(frozenset({"admin"})), "deploy", None, True),
        (Grants(frozenset()), "read", None, False),
        (Grants(None, {"a": ANY}), "run", "a", True),
        (Grants(None, {"a": ANY}), "run", "b", False),
        (Grants(None, {"a": ANY, "b": frozenset({"read"})}), "run", "b", False),
        (Grants(None, {"a": ANY, "b": frozenset({"read"})}), "run", None, True),
        (Grants.of_key(["deploy"], None), "read", "a", True),
        (Grants.of_key(["deploy"], ["a"]), "read", "b", False),
    ],
)
def test_scopes_by_project(grants, scope, project, expected):
    assert grants.may(scope, project) is expected


def test_projects_with_a_scope():
    both = Grants(None, {"a": frozenset({"admin"}), "b": frozenset({"read"})})
    assert (both.projects_with("run"), both.projects_with("read")) == ({"a"}, {"a", "b"})
    assert (Grants(ANY).projects_with("run"), Grants(ANY).projects_with("admin")) == (None, frozenset())
    assert both.projects == {"a", "b"} and Grants(ANY).projects is None


class CountingLoader:
    """A loader that counts its calls."""

    def __init__(self):
        self.times, self.answers = 0, {}
        self.started, self.gate = asyncio.Event(), asyncio.Event()

    def about(self, key):
        async def ask():
            self.times += 1
            self.started.set()
            await self.gate.wait()
            answer = self.answers.get(key)
            if isinstance(answer, Exception):
                raise answer
            return answer

        return ask


async def test_concurrent_loads_are_shared_and_survive_a_cancelled_caller():
    asked, recent = CountingLoader(), TtlCache[str](10, 3)
    asked.answers["a"] = "yes"
    waiting = [asyncio.create_task(recent.get("a", asked.about("a"))) for _ in range(5)]
    await asyncio.sleep(0)
    waiting[0].cancel()
    await asyncio.sleep(0)
    asked.gate.set()
    assert await asyncio.gather(*waiting[1:]) == ["yes"] * 4
    assert asked.times == 1 and recent.is_cached("a")


async def test_invalid_keys_do_not_evict_valid_ones():
    now = [0.0]
    asked, recent = CountingLoader(), TtlCache[str](10, 3, lambda: now[0])
    asked.gate.set()
    asked.answers["good"] = "yes"
    await recent.get("good", asked.about("good"))
    for number in range(20):
        assert await recent.get(f"bad-{number}", asked.about("bad")) is None
    assert recent.is_cached("good")
    assert [recent.is_cached(f"bad-{number}") for number in (1, 16, 17, 18, 19)] == [False] * 2 + [True] * 3
    assert await recent.get("good", asked.about("bad")) == "yes"
    assert await recent.get("bad-19", asked.about("good")) is None
    assert asked.times == 21
    now[0] = 10.0
    assert not recent.is_cached("good") and not recent.is_cached("bad-19")


async def test_a_result_is_as_old_as_the_start_of_its_load():
    now = [0.0]
    asked, recent = CountingLoader(), TtlCache[str](10, 1, lambda: now[0])
    asked.answers.update(a="yes", b="yes")
    waiting = asyncio.create_task(recent.get("a", asked.about("a")))
    await asyncio.wait_for(asked.started.wait(), 10)
    now[0] = 9.0
    asked.gate.set()
    assert await waiting == "yes" and recent.is_cached("a")
    now[0] = 10.0
    assert not recent.is_cached("a") and recent.was_valid("a")
    await recent.get("b", asked.about("b"))
    assert not recent.was_valid("a"), "there is room for one result"


async def test_failure_without_a_waiting_caller_is_not_reported():
    reported = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: reported.append(context))
    asked, recent = CountingLoader(), TtlCache[str](10, 3)
    asked.answers["a"] = ValueError("away")
    waiting = asyncio.create_task(recent.get("a", asked.about("a")))
    await asyncio.wait_for(asked.started.wait(), 10)
    waiting.cancel()
    asked.gate.set()
    for _ in range(10):
        await asyncio.sleep(0)
    assert not recent.is_cached("a")
    del waiting  # Its traceback has the failed task.
    gc.collect()
    assert reported == []


async def test_failed_load_is_not_cached():
    asked, recent = CountingLoader(), TtlCache[str](10, 3)
    asked.gate.set()
    asked.answers["a"] = ValueError("away")
    for _ in range(2):
        with pytest.raises(ValueError, match="away"):
            await recent.get("a", asked.about("a"))
    assert asked.times == 2 and not recent.is_cached("a")
