"""Kubernetes tokens by the reviews of an apiserver: tests/cluster/api_http/auth has them of a real one."""

import asyncio
from datetime import datetime

import pytest
from structlog.testing import capture_logs

from api.auth.kubernetes import MAX_PARALLEL_REVIEWS, MAX_PENDING_REVIEWS, KubernetesTokens
from api.auth.principal import Caller
from api.auth.scopes import Grants
from api.auth.unverified import parse_unverified
from api.errors import HttpApiError
from crds.api_keys import hash_of
from tests.unit.api.auth.reviews import ACCEPTED, EXPIRES, reviewing, token
from tests.unit.api.conftest import NOW

WHOLE_USER = {"username": "ci", "uid": "7", "groups": ["builders"], "extra": {"pod": ["a"]}}
PLACES = {"here": None, "there": "team-a", "elsewhere": "team-b", "unserved": "team-c"}
READ = frozenset({"read"})


@pytest.fixture
async def apiserver():
    async with reviewing() as (reviews, kube):
        yield reviews, kube


async def caller_of(tokens: KubernetesTokens, text: str, now: datetime = NOW) -> Caller | None:
    claims = parse_unverified(text)
    assert claims is not None
    return await tokens.caller(text, claims, now)


def needs_review(tokens: KubernetesTokens, text: str, now: datetime = NOW) -> bool:
    claims = parse_unverified(text)
    assert claims is not None
    return tokens.needs_review(text, claims, now)


@pytest.mark.parametrize(
    ("user", "reviewed"),
    [
        (WHOLE_USER, {"user": "ci", "uid": "7", "groups": ["builders"], "extra": {"pod": ["a"]}}),
        ({"username": "ci"}, {"user": "ci", "uid": "", "groups": [], "extra": {}}),
    ],
)
async def test_scopes_are_the_access_that_the_apiserver_allows(apiserver, user, reviewed):
    reviews, kube = apiserver
    reviews.review = {"status": {**ACCEPTED, "user": user}}
    reviews.allowed = {("crews", "get", "runs"), ("crews", "create", "deployments")}
    text = token()
    assert await caller_of(KubernetesTokens(kube, "crewyard"), text) == Caller(
        key_id="kubernetes:ci",
        grants=Grants(frozenset({"read", "deploy"})),
        plan=None,
        expires_at=EXPIRES,
        kind="kubernetes",
        rate_limit_key="kubernetes:ci",
        credential_id=f"token:{hash_of(text)}",
        token=text,
    )
    first, *others = reviews.asked
    assert first == {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenReview",
        "spec": {"token": text, "audiences": ["crewyard"]},
    }
    access = [("get", "runs"), ("create", "runs"), ("create", "deployments"), ("*", "projects")]
    assert sorted(others, key=str) == sorted(
        (
            {
                "apiVersion": "authorization.k8s.io/v1",
                "kind": "SubjectAccessReview",
                "spec": {
                    **reviewed,
                    "resourceAttributes": {
                        "namespace": "crews",
                        "group": "crewyard.dev",
                        "resource": resource,
                        "verb": verb,
                    },
                },
            }
            for verb, resource in access
        ),
        key=str,
    )


@pytest.mark.parametrize("expires", [None, 1e300])
async def test_token_without_an_end_has_none(apiserver, expires):
    _, kube = apiserver
    found = await caller_of(KubernetesTokens(kube, "crewyard"), token(exp=expires))
    assert found is not None and found.expires_at is None


@pytest.mark.parametrize(
    "changed",
    [
        {"authenticated": False},
        {"authenticated": "true"},
        {"audiences": ["elsewhere"]},
        {"audiences": []},
        {"audiences": None},
    ],
    ids=str,
)
async def test_token_that_the_apiserver_refuses_has_no_caller(apiserver, changed):
    reviews, kube = apiserver
    reviews.review = {"status": {**ACCEPTED, **changed}}
    tokens = KubernetesTokens(kube, "crewyard")
    assert await caller_of(tokens, token()) is None
    assert needs_review(tokens, token("other"))
    assert len(reviews.asked) == 1


async def test_expired_or_foreign_token_is_not_reviewed(apiserver):
    reviews, kube = apiserver
    tokens = KubernetesTokens(kube, "crewyard")
    for text, now in ((token(aud=["elsewhere"]), NOW), (token(), EXPIRES)):
        assert not needs_review(tokens, text, now)
        assert await caller_of(tokens, text, now) is None
    assert reviews.asked == []
    assert await caller_of(tokens, token()) is not None
    assert await caller_of(tokens, token(), EXPIRES) is None, "its review is cached"


async def test_known_token_is_exempt_from_the_rate_limit(apiserver, monkeypatch):
    """Others behind the same address then cannot lock it out."""
    reviews, kube = apiserver
    tokens, text = KubernetesTokens(kube, "crewyard"), token()
    assert needs_review(tokens, text)
    reviews.answering.clear()
    reviewed = asyncio.create_task(caller_of(tokens, text))
    await asyncio.sleep(0)
    assert not needs_review(tokens, text), "its review is under way"
    reviews.answering.set()
    assert await reviewed == await caller_of(tokens, text)
    assert len(reviews.asked) == 5, "the review is cached"
    monkeypatch.setattr(tokens._cache, "_seconds", 0.0)
    assert not needs_review(tokens, text), "the cache lost its review"
    assert needs_review(tokens, token("other"))


@pytest.mark.parametrize(
    ("user", "error"),
    [({}, "KeyError: 'user'"), ({"user": {}}, "KeyError: 'username'"), ({"user": ["ci"]}, "TypeError: ")],
)
async def test_answer_that_is_no_review_is_an_outage(apiserver, user, error):
    reviews, kube = apiserver
    reviews.review = {"status": {"authenticated": True, "audiences": ["crewyard"], **user}}
    with (
        capture_logs() as logged,
        pytest.raises(HttpApiError, match="the Kubernetes API cannot check the token") as refused,
    ):
        await caller_of(KubernetesTokens(kube, "crewyard"), token())
    assert refused.value.status == 503
    [line] = logged
    assert (line["event"], line["log_level"]) == ("token_review_failed", "warning")
    assert line["error"].startswith(error)


async def test_silent_apiserver_is_an_outage_in_time(apiserver, monkeypatch):
    reviews, kube = apiserver
    reviews.answering.clear()
    monkeypatch.setattr("api.auth.kubernetes.REVIEW_TIMEOUT_SECONDS", 0.1)
    with pytest.raises(HttpApiError, match="the Kubernetes API cannot check the token"):
        await asyncio.wait_for(caller_of(KubernetesTokens(kube, "crewyard"), token()), 10)


async def test_reviews_are_bounded_in_number(apiserver, monkeypatch):
    reviews, kube = apiserver
    monkeypatch.setattr("api.auth.kubernetes.REVIEW_TIMEOUT_SECONDS", 60.0)
    tokens = KubernetesTokens(kube, "crewyard")
    for attempt in "again", "and again":
        reviews.answering.clear()
        pending = [
            asyncio.create_task(caller_of(tokens, token(f"{attempt}-{number}")))
            for number in range(MAX_PENDING_REVIEWS)
        ]
        async with asyncio.timeout(30):
            while reviews.waiting < MAX_PARALLEL_REVIEWS:
                await asyncio.sleep(0.01)
        with pytest.raises(HttpApiError, match="too many tokens") as refused:
            await asyncio.wait_for(caller_of(tokens, token(f"{attempt}, one more")), 10)
        assert refused.value.status == 503
        reviews.answering.set()
        assert None not in await asyncio.gather(*pending)
    assert reviews.most_waiting == MAX_PARALLEL_REVIEWS


@pytest.mark.parametrize(
    ("allowed", "grants"),
    [
        ({}, Grants(None, {})),
        ({"crews": "get"}, Grants(None, {"here": READ})),
        ({"team-a": "get"}, Grants(None, {"there": READ})),
        (
            {"crews": "get", "team-a": "create", "team-b": "get"},
            Grants(None, {"here": READ, "there": frozenset({"run"}), "elsewhere": READ}),
        ),
        (
            {"crews": "get", "team-a": "get", "team-b": "get"},
            Grants(READ, {"here": READ, "there": READ, "elsewhere": READ}),
        ),
    ],
)
async def test_scopes_in_a_project_are_those_of_its_namespace(apiserver, allowed, grants):
    reviews, kube = apiserver
    reviews.allowed = {(namespace, verb, "runs") for namespace, verb in allowed.items()}

    async def places():
        return PLACES

    served = ("crews", "team-a", "team-b")
    found = await caller_of(KubernetesTokens(kube, "crewyard", served, places), token())
    assert found is not None and found.grants == grants
    scopes = {"get": READ, "create": frozenset({"run"}), "": frozenset()}
    assert found.namespaces == {name: scopes[allowed.get(name, "")] for name in served}
