"""Settings of the sign-in, and groups to scopes; tests/browser/test_sign_in.py signs in for real."""

import json

import pytest

from api.auth.scopes import Grants
from api.auth.sign_in.settings import GroupEntry, parse_sign_in
from api.auth.sign_in.users import grants, user_name
from api.config import ApiConfigError, parse

PROVIDER = {
    "issuer": "https://id.example.com",
    "client_id": "crewyard",
    "groups": [{"group": "operators", "scopes": ["admin"]}],
}
ENTRIES = (
    GroupEntry("operators", frozenset({"admin"})),
    GroupEntry("everybody", frozenset({"read"})),
    GroupEntry("tides", frozenset({"run"}), frozenset({"tides"})),
    GroupEntry("builders", frozenset({"deploy"}), frozenset({"tides", "winds"})),
)


def test_provider_is_read_with_its_defaults():
    found = parse_sign_in(json.dumps(PROVIDER), "hidden")
    assert found is not None and "hidden" not in repr(found)
    assert (found.groups_claim, found.scopes) == ("groups", "openid profile email groups")
    assert found.groups == (GroupEntry("operators", frozenset({"admin"})),)
    assert parse_sign_in(" ") is None


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"issuer": ""}, "issuer"),
        ({"issuer": "http://id.example.com"}, "issuer"),
        ({"issuer": "https://workflows.example.com"}, "CREWYARD_OIDC_ISSUER"),
        ({"client_id": 1}, "client_id"),
        ({"groups": []}, "groups"),
        ({"groups": [{"group": "a", "scopes": ["write"]}]}, r"groups\[0\].scopes"),
        ({"groups": [{"group": "a", "scopes": ["read"], "projects": "tides"}]}, r"groups\[0\].projects"),
        ({"groups": [{"group": "a", "scopes": ["read"], "project": "tides"}]}, r"groups\[0\]"),
        ({"secret": "x"}, "CREWYARD_SIGN_IN"),
    ],
)
def test_wrong_settings_are_named(change, named):
    environ = {
        "CREWYARD_TOKEN_KEY": "0123456789abcdef",
        "CREWYARD_OIDC_ISSUER": "https://workflows.example.com",
        "CREWYARD_SIGN_IN": json.dumps({**PROVIDER, **change}),
    }
    with pytest.raises(ApiConfigError, match=named):
        parse(environ)


def test_groups_add_up():
    found = grants(ENTRIES, ["everybody", "tides", "builders", "unknown"])
    assert found == Grants(
        frozenset({"read"}),
        {"tides": frozenset({"read", "run", "deploy"}), "winds": frozenset({"read", "deploy"})},
    )
    assert grants(ENTRIES, ["operators"]) == Grants(frozenset({"admin", "read"}))


@pytest.mark.parametrize("groups", [[], ["unknown"], None, "operators", {"operators": True}, [["operators"]]])
def test_no_group_is_no_caller(groups):
    assert grants(ENTRIES, groups) is None


def test_scopes_everywhere_and_in_projects():
    found = Grants(frozenset({"read"}), {"tides": frozenset({"read", "deploy"})})
    assert found.projects is None
    assert found.may("deploy", "tides") and not found.may("deploy", "winds")
    assert found.may("read", "winds") and found.scopes_in("winds") == {"read"}
    assert found.projects_with("deploy") == {"tides"}
    assert found.projects_with("read") is None
    assert found.projects_with("admin") == frozenset()
    assert found.projects_with("preview") == {"tides"}
    assert Grants(frozenset({"deploy"})).projects_with("preview") is None


@pytest.mark.parametrize(
    ("claims", "name"),
    [
        ({"sub": "1", "email": "a@b.example", "email_verified": True}, "a@b.example"),
        ({"sub": "1", "email": "a@b.example", "email_verified": False}, "1"),
        ({"sub": "1", "email": "a@b.example", "email_verified": "true"}, "1"),
        ({"sub": "1", "preferred_username": "root"}, "1"),
        ({"sub": "1", "email": "a\nb", "email_verified": True}, "1"),
        ({"sub": ""}, None),
        ({"email": "a@b.example", "email_verified": True}, None),
    ],
)
def test_names_that_users_choose_are_not_used(claims, name):
    assert user_name(claims) == name
