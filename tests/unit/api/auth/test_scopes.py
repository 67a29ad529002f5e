"""Scopes and workflow entries as values: what a change of one comparison or default would let through."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from api.auth import workflows
from api.auth.scopes import NO_SCOPES, SCOPES, Grants
from api.auth.unverified import UnverifiedClaims

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


ENTRY = {"repository": "team/tides", "scopes": ["run"]}


@pytest.mark.parametrize(
    "bad",
    [
        7,
        {},
        {"scopes": ["run"]},
        {**ENTRY, "repository": None},
        *({**ENTRY, field: 7} for field in ("ref", "environment", "repositoryId", "workflow", "event")),
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
