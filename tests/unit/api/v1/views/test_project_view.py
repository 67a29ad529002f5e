"""Projects as JSON, from their rows, request bodies as specs, and what only admins may change."""

import pytest

from api.http import casing
from api.store.index.projects import ProjectRow
from api.v1.projects import view
from api.v1.projects.schema import SPEC
from tests.unit.api.conftest import NOW

SHOWN = {
    **dict.fromkeys(map(casing.snake, SPEC["properties"])),
    "name": "demo",
    "namespace": None,
    "plan": "free",
    "created_at": "2026-11-21T10:00:00Z",
    "created_by": "key:k1",
    "active_deployment_id": None,
    "ready": {"status": None, "reason": "Pending", "message": ""},
    "limited": None,
    "failing_notifications": [],
}


def condition(kind, status):
    return {"type": kind, "status": status, "reason": "Because", "message": "m", "lastTransitionTime": "t"}


@pytest.mark.parametrize(
    ("fields", "shown"),
    [
        ({}, {}),
        ({"object_namespace": "team"}, {"namespace": "team"}),
        ({"active": "dep-a-1"}, {"active_deployment_id": "dep_a-1"}),
        ({"spec": {"plan": "large"}}, {"plan": "large"}),
        (
            {
                "spec": {
                    "pod": {"imagePullSecrets": [{"name": "pull"}]},
                    "commitStatus": {"provider": "gitea"},
                }
            },
            {"pod": {"image_pull_secrets": [{"name": "pull"}]}, "commit_status": {"provider": "gitea"}},
        ),
        (
            {"status": {"conditions": [condition("Ready", "True")]}},
            {"ready": {"status": True, "reason": "Because", "message": "m"}},
        ),
        (
            {"status": {"conditions": [condition("Ready", "False")]}},
            {"ready": {"status": False, "reason": "Because", "message": "m"}},
        ),
        (
            {"status": {"conditions": [condition("Ready", "Unknown"), condition("Limited", "True")]}},
            {
                "ready": {"status": None, "reason": "Because", "message": "m"},
                "limited": {"reason": "Because", "message": "m"},
            },
        ),
    ],
)
def test_project_with_all_fields(fields, shown):
    row = ProjectRow("demo", "uid-demo", 1, NOW, "key:k1", **{**EMPTY, **fields})
    assert view.item(row) == {**SHOWN, **shown}


EMPTY = {"active": None, "activated_at": None, "spec": {}, "status": {}}


def test_only_notifications_that_the_project_still_has_are_failing():
    row = ProjectRow(
        "demo",
        "uid-demo",
        1,
        NOW,
        None,
        **{**EMPTY, "spec": {"notifications": [{"name": "chat"}, {"name": "mail"}]}},
        failing_notifications=("mail", "pager"),
    )
    assert view.item(row)["failing_notifications"] == ["mail"]


def test_spec_of_a_body_is_without_name_and_namespace():
    body = {"name": "demo", "namespace": "team", "plan": "large", "commit_status": {"provider": "gitea"}}
    assert view.spec(body) == {"plan": "large", "commitStatus": {"provider": "gitea"}}


def test_every_secret_reference_is_admin_only():
    def references(schema, path=()):
        for name, inner in (schema.get("properties") or {}).items():
            field_path = (*path, casing.snake(name))
            if name in ("secretRef", "imagePullSecrets"):
                yield field_path
            else:
                yield from references(inner, field_path)

    paths = list(references(SPEC))
    assert ("source", "git", "secret_ref") in paths and len(paths) >= 5
    for path in paths:
        body: object = {"name": "x"}
        for part in reversed(path):
            body = {part: body}
        (field,) = view.admin_fields(body)
        assert field == ".".join(path) or (field, path[-1]) == (".".join(path[:-1]), "secret_ref")


def test_other_fields_need_no_admin():
    body = {
        "plan": "large",
        "source": {"git": {"url": "https://x"}},
        "run": {"timeout": "1m"},
        "budget": None,
    }
    assert list(view.admin_fields(body)) == ["plan", "budget"]


@pytest.mark.parametrize("label", ["plan", "budget", "oidc", "notifications"])
def test_a_label_of_a_node_needs_no_admin(label):
    assert list(view.admin_fields({"pod": {"node_selector": {label: "x"}}})) == []


WITH_SECRETS = {
    "source": {"git": {"url": "https://git.example/x", "secretRef": {"name": "s"}}},
    "github": {"repository": "team/x", "secretRef": {"name": "s"}},
    "commitStatus": {"provider": "gitea", "repository": "team/x", "secretRef": {"name": "s"}},
}


@pytest.mark.parametrize(
    ("body", "fields"),
    [
        ({"source": {"git": {"url": "https://evil.example/x"}}}, ["source.git.url"]),
        ({"source": {"git": {"url": None}}}, ["source.git.url"]),
        ({"github": {"repository": "evil/x"}}, ["github.repository"]),
        (
            {"commit_status": {"provider": "gitlab", "repository": "evil/x"}},
            ["commit_status.provider", "commit_status.repository"],
        ),
        ({"source": {"git": {"url": "https://git.example/x", "path": "crew"}}}, []),
        ({"source": {"git": None}, "github": None, "commit_status": None}, []),
        ({"source": None, "run": {"timeout": "1m"}}, []),
    ],
)
def test_only_an_admin_sends_a_secret_to_another_destination(body, fields):
    assert list(view.redirected_secrets(body, WITH_SECRETS)) == fields
    without = {"source": {"git": {"url": "https://git.example/x"}}, "github": {"repository": "team/x"}}
    assert list(view.redirected_secrets(body, without)) == []


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"source": None}, "source"),
        ({"source": {"git": None}}, "source.git"),
        ({"source": {}}, None),
        ({"source": {"git": {"path": "crew"}}}, None),
        ({"run": {"timeout": "1m"}}, None),
    ],
)
def test_only_an_admin_drops_the_verification_of_commits(body, field):
    verified = {"source": {"git": {"url": "https://x", "verify": {"secretRef": {"name": "s"}}}}}
    assert list(view.dropped_verification(body, verified)) == ([field] if field else [])
    assert list(view.dropped_verification(body, {"source": {"git": {"url": "https://x"}}})) == []
    assert list(view.dropped_verification(body, {})) == []
    assert list(view.admin_fields({"source": {"git": {"verify": None}}})) == ["source.git.verify"]
