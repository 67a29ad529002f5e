"""Deployments as JSON, from their rows, and request bodies as specs."""

import pytest

from api.auth.principal import Caller
from api.auth.scopes import Grants
from api.v1.deployments import view
from crds import names
from tests.unit.api.telemetry.trace_rows import at, build_row

URL, DOCS = "https://crews.example", "https://docs.example"
LISTED = {
    "id": "dep_a",
    "project": "demo",
    "status": "active",
    "message": "Add tides",
    "created_at": "2026-11-21T10:00:00.250000Z",
    "activated_at": "2026-11-21T10:01:31.250000Z",
}
DETAIL = {
    **LISTED,
    "created_by": "key:k1",
    "git_sha": "ab" * 20,
    "build_logs_url": f"{URL}/v1/deployments/dep_a/logs",
}
READY = {
    "type": "Ready",
    "status": "False",
    "reason": "Queued",
    "message": "No free build slot.",
    "lastTransitionTime": "2026-11-21T10:00:02Z",
}
WAITING = {"reason": "Queued", "message": "No free build slot.", "since": "2026-11-21T10:00:02Z"}
QUEUED_STAGE = {"name": "queued", "seconds": 1.0}
RUNNING_STAGE = {"name": "fetch", "startedAt": "2026-11-21T10:40:00Z"}
LATE = {"reason": "BuildTimeout", "message": "late"}


def row(**fields):
    """Return the row of an active deployment without stages."""
    spec = {"message": "Add tides", "gitSha": "ab" * 20, **fields.pop("spec", {})}
    own = {"created_by": "key:k1", "activated_at": at(91), "stages": (), "conditions": ()}
    return build_row(**{**own, "spec": spec, **fields})


def ready(reason, status="Unknown"):
    """Return the conditions of a deployment whose build has started."""
    return ({**READY, "status": status, "reason": reason},)


def waits(reason, since=READY["lastTransitionTime"]):
    """Return why it waits."""
    return {**WAITING, "reason": reason, "since": since}


@pytest.mark.parametrize(
    ("fields", "shown"),
    [
        ({}, {}),
        ({"spec": {"message": None}}, {"message": ""}),
        ({"activated_at": None}, {"activated_at": None}),
        ({"plan": {"smoke": {}}}, {"smoke_run": names.id_of(names.smoke_run("uid-d"))}),
        ({"preview": True}, {"is_preview": True}),
        ({"status": "failed", "error": LATE}, {"error": LATE}),
        ({"status": "failed"}, {"error": {}}),
        ({"status": "superseded", "error": LATE}, {}),
    ],
)
def test_deployment_in_a_list(fields, shown):
    assert view.item(row(**fields)) == {**LISTED, "status": fields.get("status", "active"), **shown}


def test_response_to_a_new_deployment():
    keys = ("id", "project", "status", "message", "created_at")
    assert view.created(row(preview=True)) == {key: LISTED[key] for key in keys}


@pytest.mark.parametrize(
    ("status", "fields", "more", "shown"),
    [
        ("active", {}, {}, {}),
        ("pending", {"conditions": (READY,)}, {}, {"waiting": WAITING}),
        (
            "pending",
            {"conditions": (READY,)},
            {"position": 2},
            {"queue_position": 2, "waiting": {**WAITING, "message": "No free build slot. Position 2."}},
        ),
        # Nothing has written its status yet.
        (
            "pending",
            {"conditions": ({**READY, "lastTransitionTime": "1970-01-01T00:00:00Z"},)},
            {},
            {"waiting": {**WAITING, "since": LISTED["created_at"]}},
        ),
        ("pending", {"conditions": ()}, {}, {}),
        ("building", {"conditions": ready("Assembling")}, {}, {}),
        ("building", {"conditions": ready("InstallingDependencies")}, {}, {}),
        ("building", {"conditions": ready("Activating")}, {}, {}),
        # An activation that the row of the Project does not include yet.
        ("building", {"conditions": ready("Active", "True")}, {}, {}),
        ("building", {"conditions": ready("SmokeRunning")}, {}, {"waiting": waits("SmokeRunning")}),
        ("building", {"conditions": ready("PodRefused")}, {}, {"waiting": waits("PodRefused")}),
        (
            "building",
            {"conditions": ready("Unschedulable"), "stages": (QUEUED_STAGE, RUNNING_STAGE)},
            {},
            {
                "waiting": waits("Unschedulable", RUNNING_STAGE["startedAt"]),
                "stages": [QUEUED_STAGE, {"name": "fetch", "started_at": RUNNING_STAGE["startedAt"]}],
            },
        ),
        ("superseded", {"conditions": ready("SmokeRunning")}, {}, {}),
        ("building", {"built": False, "spec": {"cancel": True}}, {}, {"cancel_requested": True}),
        ("active", {"spec": {"cancel": True}}, {}, {}),
        ("building", {"built": False}, {}, {}),
        (
            "active",
            {"plan": {"entrypoints": {"one": "a:b", "two": "a:c"}}},
            {},
            {"entrypoints": ["one", "two"]},
        ),
        (
            "building",
            {"stages": ({"name": "fetch", "seconds": 1.5, "more": 1}, {"name": "plan", "startedAt": "t"})},
            {},
            {"stages": [{"name": "fetch", "seconds": 1.5}, {"name": "plan", "started_at": "t"}]},
        ),
        ("failed", {"error": LATE}, {}, {"error": LATE}),
        (
            "failed",
            {"error": LATE},
            {"docs_url": DOCS},
            {"error": {**LATE, "docs_url": f"{DOCS}/troubleshooting.html#buildtimeout"}},
        ),
        ("failed", {}, {"docs_url": DOCS}, {"error": {}}),
    ],
)
def test_deployment_with_all_fields(status, fields, more, shown):
    assert view.detail(row(status=status, **fields), URL, **more) == {**DETAIL, "status": status, **shown}


@pytest.mark.parametrize(
    ("plan", "shown"),
    [
        ({}, {"schema": {"type": "object"}, "declared": False}),
        ({"inputs": {"declared": True}}, {"schema": {"type": "object"}, "declared": True}),
        (
            {"inputs": {"schema": {"type": "object", "required": ["topic"]}}},
            {"schema": {"type": "object", "required": ["topic"]}, "declared": False},
        ),
    ],
)
def test_input_is_any_object_unless_the_plan_tells_its_schema(plan, shown):
    assert view.inputs(row(plan=plan)) == shown


SOURCE = {"archive": {"upload": "upl_1"}}


@pytest.mark.parametrize(
    ("body", "spec"),
    [
        ({}, {}),
        (
            {"crew": "tides", "message": "Add tides", "git_sha": "ab" * 20},
            {"crew": "tides", "message": "Add tides", "gitSha": "ab" * 20},
        ),
        ({"preview": {}}, {"preview": {}}),
        ({"preview": {"pull_request": 7}}, {"preview": {"pullRequest": 7}}),
    ],
)
def test_spec_of_a_new_deployment(body, spec):
    assert view.spec({"project": "demo", **body}, SOURCE) == {"project": "demo", "source": SOURCE, **spec}


def test_annotation_of_a_new_deployment_names_its_creator():
    caller = Caller("k1", Grants(), None, None, "key", "k1", "k1")
    assert view.annotations(caller, {}, "a key") == {names.ANNOTATION_CREATED_BY: "key:k1"}
