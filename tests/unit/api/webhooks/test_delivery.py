"""Deliveries of git hosts and their outcome for a project."""

import json
from urllib.parse import urlencode

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from multidict import CIMultiDict

from api.webhooks.body import DeliveryBody
from api.webhooks.delivery import FORM, JSON, identifiers, parse_delivery, parse_payload
from api.webhooks.outcome import decide
from api.webhooks.replay_protection import delivery_keys
from api.webhooks.signature import DeliveryProof

URL = "https://git.example.com/team/research.git"
GITHUB = {"ref": "refs/heads/main", "repository": {"full_name": "team/research", "default_branch": "main"}}
GITLAB = {
    "ref": "refs/heads/main",
    "project": {"path_with_namespace": "team/research", "default_branch": "main"},
    "repository": {"name": "research"},
}
TAG = {"ref": "refs/tags/v1", "repository": GITHUB["repository"]}
CLOSED = {"action": "closed", "number": 7, "repository": GITHUB["repository"]}
MERGED = {"object_attributes": {"action": "merge", "iid": 7}, "project": GITLAB["project"]}


@pytest.mark.parametrize(
    ("header", "event", "payload", "git", "effect", "words"),
    [
        ("X-GitHub-Event", "push", GITHUB, {}, "look", "polled now"),
        ("X-Gitea-Event", "push", GITHUB, {"ref": {"branch": "main"}}, "look", "polled now"),
        ("X-Forgejo-Event", "push", GITHUB, {}, "look", "polled now"),
        ("X-Gitlab-Event", "Push Hook", GITLAB, {}, "look", "polled now"),
        ("X-Gitlab-Event", "Tag Push Hook", TAG, {"ref": {"tag": "v1"}}, "look", "polled now"),
        ("X-GitHub-Event", "push", None, {}, "look", "polled now"),
        ("X-GitHub-Event", "push", {}, {"ref": {"branch": "main"}}, "look", "polled now"),
        (
            "X-GitHub-Event",
            "create",
            {**TAG, "ref": "v1", "ref_type": "tag"},
            {"ref": {"tag": "v1"}},
            "look",
            "",
        ),
        ("X-GitHub-Event", "ping", GITHUB, {}, "none", "works"),
        ("X-GitHub-Event", "push", GITHUB, None, "none", "has no git source"),
        ("X-GitHub-Event", "push", GITHUB, {"ref": {"branch": "next"}}, "none", "refs/heads/next"),
        ("X-GitHub-Event", "push", TAG, {}, "none", "refs/heads/main"),
        ("X-GitHub-Event", "push", GITHUB, {"ref": {"tag": "main"}}, "none", "refs/tags/main"),
        (
            "X-GitHub-Event",
            "push",
            GITHUB,
            {"ref": {"commit": "a" * 40}},
            "none",
            "pins the project to a commit",
        ),
        ("X-GitHub-Event", "push", GITHUB, {"suspend": True}, "none", "suspend"),
        (
            "X-GitHub-Event",
            "push",
            GITHUB,
            {"url": "https://x/other/research"},
            "none",
            "does not follow the repository",
        ),
        (
            "X-GitHub-Event",
            "push",
            GITHUB,
            {"url": "https://x/ateam/research"},
            "none",
            "does not follow the repository",
        ),
        ("X-GitHub-Event", "push", GITHUB, {"url": "ssh://git@x:22/Team/Research"}, "look", "polled now"),
        ("X-GitHub-Event", "push", GITHUB, {"url": "http://x/gitea/team/research"}, "look", "polled now"),
        ("X-GitHub-Event", "issues", GITHUB, {}, "none", "issues"),
        ("X-GitHub-Event", "pull_request", CLOSED, {}, "close", "pull request 7"),
        ("X-Gitlab-Event", "Merge Request Hook", MERGED, {"suspend": True}, "close", "pull request 7"),
        ("X-GitHub-Event", "pull_request", {**CLOSED, "action": "opened"}, {}, "none", "pull_request"),
        ("X-GitHub-Event", "pull_request", {**CLOSED, "number": True}, {}, "none", "pull_request"),
        ("X-GitHub-Event", "pull_request", None, {}, "none", "pull_request"),
        ("X-Other-Event", "push", GITHUB, {}, "none", "ignored"),
    ],
)
def test_outcome(header, event, payload, git, effect, words):
    source = None if git is None else {"url": URL, **git}
    verdict = decide(source, parse_delivery(CIMultiDict({header: event}), payload))
    assert verdict.effect == effect
    assert words in verdict.reason


@pytest.mark.parametrize(
    ("reported", "payload", "effect", "words"),
    [
        ([], CLOSED, "close", "pull request 7"),
        (["Team/Research"], CLOSED, "close", "pull request 7"),
        (["team/mirror", "team/research"], MERGED, "close", "pull request 7"),
        (["team/other"], CLOSED, "none", "no repository team/research"),
        ([], {**CLOSED, "action": "opened"}, "none", "no git source"),
    ],
)
def test_closed_pull_request_of_a_project_of_uploads(reported, payload, effect, words):
    event = "Merge Request Hook" if payload is MERGED else "pull_request"
    verdict = decide(None, parse_delivery(CIMultiDict({"X-GitHub-Event": event}), payload), reported)
    assert verdict.effect == effect
    assert words in verdict.reason


def test_body_is_json_or_form():
    text = json.dumps(GITHUB)
    assert parse_payload(text.encode(), JSON) == GITHUB
    assert parse_payload(urlencode({"payload": text}).encode(), FORM) == GITHUB


@pytest.mark.parametrize(
    ("body", "kind", "words"),
    [
        (b"{", JSON, "not JSON"),
        (b"[]", JSON, "not a JSON object"),
        (b"[" * 100_000, JSON, "too deeply"),
        (b"other=1", FORM, "no field payload"),
        (b"&".join(b"a=1" for _ in range(100)), FORM, "fields"),
    ],
)
def test_invalid_body_names_the_reason(body, kind, words):
    with pytest.raises(ValueError, match=words):
        parse_payload(body, kind)


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
FIELDS = ("ref", "ref_type", "repository", "project", "action", "number", "object_attributes")


@settings(deadline=None)
@given(
    st.dictionaries(st.sampled_from(FIELDS), anything), st.sampled_from(["push", "pull_request", "create"])
)
def test_parsing_tolerates_fields_of_any_type(payload, event):
    verdict = decide({"url": URL}, parse_delivery({"X-GitHub-Event": event}, payload))
    assert verdict.effect in ("look", "close", "none")


def test_delivery_keys():
    headers = CIMultiDict({"X-GitHub-Delivery": "a", "X-Gitea-Delivery": "a", "X-Gitlab-Event-UUID": ""})
    body = DeliveryBody(b"", "", "5f")
    assert identifiers(headers) == ("a",)
    # aiohttp decodes other bytes than UTF-8 as surrogates, which the index cannot store.
    assert identifiers(CIMultiDict({"X-GitHub-Delivery": "\udcff"})) == ()
    assert delivery_keys(("a",), DeliveryProof(digests=("x",)), body) == ["id:a", "body:5f"]
    assert delivery_keys(("a",), DeliveryProof(tokens=("x",)), body) == ["id:a body:5f"]
    assert delivery_keys((), DeliveryProof(tokens=("x",)), body) == ["body:5f"]
