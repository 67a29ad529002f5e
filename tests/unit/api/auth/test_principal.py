"""What a caller may do in projects and namespaces, and the errors that say what it lacks."""

import pytest

from api.auth.principal import Caller, CallerKind
from api.auth.scopes import NO_SCOPES, Grants
from api.errors import HttpApiError

READ, RUN, ADMIN = frozenset({"read"}), frozenset({"read", "run"}), frozenset({"admin"})


def caller(
    grants: Grants, namespaces: dict[str, frozenset[str]] | None = None, kind: CallerKind = "key"
) -> Caller:
    return Caller("k1", grants, None, None, kind, "k1", "k1", namespaces=namespaces)


def test_principal_has_the_kind_of_a_key_and_the_name_of_others():
    assert caller(Grants(READ)).principal == "key:k1"
    assert caller(Grants(READ), kind="workflow").principal == "k1"


def test_token_is_in_no_representation():
    assert "secret" not in repr(Caller("k1", Grants(), None, None, "user", "k1", "k1", token="secret"))


@pytest.mark.parametrize(
    ("namespaces", "project", "expected"),
    [
        (None, None, False),
        ({}, None, False),
        ({"team-a": READ}, None, False),
        ({"team-a": READ, "team-b": RUN}, None, True),
        ({"team-b": RUN}, "demo", False),
    ],
)
def test_rights_in_a_namespace_count_for_no_single_project(namespaces, project, expected):
    assert caller(Grants(None, {"demo": READ}), namespaces).may("run", project) is expected


@pytest.mark.parametrize(
    ("grants", "namespaces", "namespace", "expected"),
    [
        (Grants(RUN), None, None, True),
        (Grants(RUN), None, "team-a", False),
        (Grants(None, {"demo": ADMIN}), None, "team-a", False),
        (Grants(ADMIN), None, "team-a", True),
        (Grants(), {"team-a": RUN, "team-b": ADMIN}, None, False),
        (Grants(), {"team-b": frozenset({"deploy"}), "team-a": RUN}, None, True),
        (Grants(), {"team-a": RUN, "team-b": ADMIN}, "team-b", True),
        (Grants(ADMIN), {"team-a": ADMIN}, "team-c", False),
    ],
)
def test_namespaces_in_which_projects_may_be_created(grants, namespaces, namespace, expected):
    assert caller(grants, namespaces).may_create_in(namespace, "deploy") is expected


def refusal(check, *arguments) -> tuple[int, str, dict[str, object]]:
    with pytest.raises(HttpApiError) as caught:
        check(*arguments)
    return caught.value.status, caught.value.message, caught.value.details


def test_missing_scope_is_named_with_the_scopes_of_the_caller():
    bot = caller(Grants(None, {"demo": RUN, "other": frozenset({"deploy", "read"})}))
    assert bot.require("run", "demo") is bot.require("deploy") is None
    status, message, details = refusal(bot.require, "deploy", "demo")
    assert (status, details) == (403, {"required_scope": "deploy", "scopes": ["read", "run"]})
    assert message == "this key lacks the scope deploy in the project demo; use a key that has it"
    assert refusal(bot.require, "run", "absent")[2] == {"required_scope": "run", "scopes": []}
    assert refusal(bot.require, "admin") == (
        403,
        "this key lacks the scope admin; use a key that has it",
        {"required_scope": "admin", "scopes": ["deploy", "read", "run"]},
    )


def test_project_without_access_is_refused_by_its_field():
    bot = caller(Grants(None, {"demo": RUN, "empty": NO_SCOPES}))
    assert bot.projects == {"demo", "empty"}
    assert bot.require_project("demo", "project") is bot.require_project("demo", "project", "run") is None
    status, message, details = refusal(bot.require_project, "other", "filter")
    assert (status, details) == (403, {"field": "filter"})
    assert "for the project other;" in message
    # The project is accessible, so the error is about the scope.
    for project, scope, held in (("demo", "deploy", ["read", "run"]), ("empty", "read", [])):
        found = refusal(bot.require_project, project, "filter", scope)[2]
        assert found == {"required_scope": scope, "scopes": held}
    assert refusal(bot.require_project, "empty", "filter")[2]["required_scope"] == "read"
