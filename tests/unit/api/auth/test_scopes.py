"""Scopes, claims and workflow entries as values: what one other comparison or default would let through."""

import base64
import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from api.auth import workflows
from api.auth.jwks import RSA_KEY_BITS
from api.auth.scopes import NO_SCOPES, SCOPES, Grants
from api.auth.unverified import UnverifiedClaims, parse_unverified

NOW = datetime(2026, 11, 21, 10, 0, tzinfo=UTC)
READ = frozenset({"read"})


@pytest.mark.parametrize(
    ("held", "scope", "projects"),
    [
        ({"a": {"read"}, "b": {"deploy"}, "c": {"admin"}}, "read", {"a", "c"}),
        ({"a": {"read"}, "b": {"deploy"}, "c": {"admin"}}, "deploy", {"b", "c"}),
        ({"a": {"read"}, "b": {"deploy"}, "c": {"admin"}}, "admin", {"c"}),
        ({"a": {"read"}}, "run", set()),
        ({}, "read", set()),
    ],
)
def test_projects_with_a_scope(held, scope, projects):
    grants = Grants(None, {project: frozenset(scopes) for project, scopes in held.items()})
    assert grants.projects_with(scope) == projects


@pytest.mark.parametrize("scope", SCOPES)
def test_a_scope_everywhere_names_no_projects(scope):
    assert Grants(frozenset({scope})).projects_with(scope) is None
    assert Grants(frozenset({"admin"})).projects_with(scope) is None
    assert Grants(frozenset({scope})).administers_all is (scope == "admin")
    assert not Grants(None, {"a": frozenset({"admin"})}).administers_all
    for other in {*SCOPES} - {scope, "admin"}:
        expected = None if (scope, other) == ("preview", "deploy") else NO_SCOPES
        assert Grants(frozenset({other})).projects_with(scope) == expected


def test_key_may_read_and_has_only_its_scopes():
    assert Grants.of_key([], None) == Grants(READ)
    assert Grants.of_key(["run"], ["a", "b"]) == Grants(None, dict.fromkeys(("a", "b"), READ | {"run"}))


def test_a_token_expires_at_its_time():
    claims = UnverifiedClaims("RS256", "k", "https://i.example", frozenset(), NOW.timestamp())
    assert not claims.expired(NOW - timedelta(microseconds=1))
    assert claims.expired(NOW) and claims.expired(NOW + timedelta(seconds=1))
    assert not replace(claims, expires=None).expired(NOW)


def token(header, claims, signature="s" * 40):
    parts = (json.dumps(part).encode() for part in (header, claims))
    return ".".join([*(base64.urlsafe_b64encode(part).rstrip(b"=").decode() for part in parts), signature])


HEADER = {"alg": "RS256", "kid": "one"}


@pytest.mark.parametrize(
    ("header", "claims", "expected"),
    [
        (HEADER, {"iss": "i", "aud": "a", "exp": 7}, ("RS256", "one", "i", frozenset({"a"}), 7)),
        (HEADER, {"iss": "iss", "aud": ["a", 7, "b"], "exp": 7.5},
         ("RS256", "one", "iss", frozenset({"a", "b"}), 7.5)),
        ({"typ": "JWT"}, {"sub": "x"}, ("", "", "", frozenset(), None)),
        ({"alg": 7, "kid": None}, {"iss": [], "aud": {"a": 1}}, ("", "", "", frozenset(), None)),
        (HEADER, {"exp": "7"}, None),
        (HEADER, {"exp": True}, None),
        (HEADER, [1, 2], None),
        ([1, 2], {"iss": "i"}, None),
    ],
)  # fmt: skip
def test_claims_of_a_token_without_its_verification(header, claims, expected):
    assert parse_unverified(token(header, claims)) == (expected and UnverifiedClaims(*expected))


def test_a_signature_of_the_longest_accepted_key_has_a_form():
    signature = base64.urlsafe_b64encode(bytes(max(RSA_KEY_BITS) // 8)).rstrip(b"=").decode()
    assert parse_unverified(token(HEADER, {"iss": "i"}, signature)) is not None


ENTRY = {"repository": "team/tides", "scopes": ["run"]}


def test_every_field_of_an_entry_is_read():
    names = {"ref": "refs/heads/*", "environment": "prod", "repositoryId": "42", "workflow": "ci.yml"}
    [entry] = workflows.entries("tides", [{**ENTRY, **names, "event": "push"}], "uid-1")
    assert entry == workflows.OidcEntry(
        "tides", "team/tides", "refs/heads/*", "prod", frozenset({"run"}), "uid-1", "42", "ci.yml", "push"
    )


CLAIMS = {
    "repository": "team/tides",
    "ref": "refs/heads/main",
    "environment": "prod",
    "repository_id": "42",
    "workflow_ref": "Team/tides/.github/workflows/ci.yml@refs/heads/main@x",
    "event_name": "push",
}
WORKFLOW = workflows.Workflow("team/tides", "refs/heads/main", "prod", "42", "ci.yml", "push")


@pytest.mark.parametrize(
    ("claims", "changes"),
    [
        ({}, {}),
        ({"ref": None, "environment": ""}, {"ref": None, "environment": None}),
        ({"repository_id": 42, "event_name": "a\n"}, {"repository_id": None, "event": None}),
        ({"repository_id": None, "event_name": "x" * 256}, {"repository_id": None, "event": None}),
        ({"workflow_ref": None}, {"workflow": None}),
        ({"workflow_ref": "team/other/.github/workflows/ci.yml@x"}, {"workflow": None}),
        ({"workflow_ref": "team/tides/.github/workflows/ci.yml"}, {}),
    ],
)
def test_workflow_of_claims(claims, changes):
    assert workflows.of_claims({**CLAIMS, **claims}) == replace(WORKFLOW, **changes)


@pytest.mark.parametrize("repository", [None, 7, "tides", "a/b/c", "a/b\n", "é/b", "a/" + "b" * 101])
def test_claims_without_a_valid_repository_are_of_no_workflow(repository):
    assert workflows.of_claims({**CLAIMS, "repository": repository}) is None


def test_name_of_a_workflow_has_its_ref_and_environment():
    names = [replace(WORKFLOW, ref=ref, environment=env).name for ref in ("r", None) for env in ("e", None)]
    repository = "workflow:team/tides"
    assert names == [f"{repository}:r:e", f"{repository}:r", f"{repository}:e", repository]


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, True),
        ({"repository": "TEAM/Tides"}, True),
        ({"repository": "team/other"}, False),
        ({"ref": "refs/heads/next"}, False),
        ({"environment": "test"}, False),
        ({"environment": None}, False),
        ({"repository_id": "43"}, False),
        ({"workflow": "cd.yml"}, False),
        ({"event": "schedule"}, False),
    ],
)
def test_entry_with_all_fields_matches_only_all_of_them(changes, expected):
    names = {"environment": "prod", "repository_id": "42", "workflow": "ci.yml", "event": "push"}
    entry = workflows.OidcEntry("tides", "Team/tides", "refs/heads/main", scopes=READ, **names)
    assert entry.matches(replace(WORKFLOW, **changes)) is expected


@pytest.mark.parametrize("event", ["push", None, *workflows.FORK_EVENTS])
def test_entry_without_an_event_matches_none_that_a_fork_causes(event):
    entry = workflows.OidcEntry("tides", "team/tides", None, None, READ)
    assert entry.matches(replace(WORKFLOW, event=event)) is (event not in workflows.FORK_EVENTS)


@pytest.mark.parametrize(
    "bad",
    [
        7,
        {},
        {"scopes": ["run"]},
        {**ENTRY, "repository": None},
        *(
            {**ENTRY, field: value}
            for field in ("ref", "environment", "repositoryId", "workflow", "event")
            for value in (7, 0, [])
        ),
    ],
)
def test_a_malformed_entry_hides_no_other(bad):
    good = workflows.OidcEntry("tides", "team/tides", None, None, frozenset({"run"}))
    assert workflows.entries("tides", [bad, ENTRY, bad, ENTRY]) == [good, good]


def test_no_entry_grants_admin_and_every_entry_lets_read():
    entries = workflows.entries("tides", [{**ENTRY, "scopes": list(SCOPES)}, {**ENTRY, "scopes": []}])
    found = workflows.grants(entries, workflows.Workflow("team/tides", "refs/heads/main", None))
    assert found == Grants(None, {"tides": frozenset({"read", "run", "preview", "deploy"})})
    [_, nothing] = entries
    found = workflows.grants([nothing], workflows.Workflow("team/tides", None, None))
    assert found == Grants(None, {"tides": READ})


@pytest.mark.parametrize("claim", ["ref", "environment"])
def test_longest_name_of_a_claim(claim):
    longest = "x" * 255
    assert workflows.of_claims({"repository": "team/tides", claim: longest}) is not None
    assert workflows.of_claims({"repository": "team/tides", claim: longest + "x"}) is None
