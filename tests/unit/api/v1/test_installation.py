"""The state of the installation, the usage of all projects, and the caller."""

from datetime import timedelta

import pytest

from api.v1.installation.components import NO_LEADER, NOT_ANSWERING, controller_of
from tests.unit.api.conftest import NOW
from tests.unit.api.v1.test_usage import account_all, add_finished_run

QUEUED = {"type": "Ready", "status": "False", "reason": "Queued", "message": ""}


async def test_builds_that_wait_and_run_are_counted_and_listed(testbed):
    await testbed.add_project("one")
    await testbed.add_project("two")
    await testbed.add_deployment("dep-queued", "one", "Pending", conditions=[QUEUED])
    await testbed.add_deployment("dep-new", "one", "Pending")
    await testbed.add_deployment("dep-running", "two", "Building")
    await testbed.add_deployment("dep-active", "two", "Active")
    await testbed.add_run("run-a", "one")
    found = (await testbed.get("/v1/installation"))["data"]
    assert [row["id"] for row in found["builds"].pop("deployments")] == ["dep_running", "dep_queued"]
    assert found["builds"] == {"waiting": 1, "running": 1, "slots": 2}
    assert found["runs"] == {"pending": 1, "running": 0}


async def test_a_smoke_run_is_part_of_no_build(testbed):
    await testbed.add_project("one")
    conditions = [
        {"type": "Ready", "status": "False", "reason": "SmokeTesting", "message": ""},
        {"type": "Built", "status": "True", "reason": "Built", "message": ""},
    ]
    await testbed.add_deployment("dep-smoke", "one", "Building", conditions=conditions)
    found = (await testbed.get("/v1/installation"))["data"]
    assert found["builds"] == {"waiting": 0, "running": 0, "slots": 2, "deployments": []}


async def test_a_cluster_that_does_not_answer_is_said(testbed):
    found = (await testbed.get("/v1/installation"))["data"]
    assert found["components"] == [
        {"name": "index", "ready": True, "message": None},
        {"name": "kube-apiserver", "ready": False, "message": NOT_ANSWERING},
        {"name": "controller", "ready": None, "message": NOT_ANSWERING},
    ]


def lease(age: float, holder: str = "one") -> dict:
    renewed = (NOW - timedelta(seconds=age)).isoformat()
    return {"spec": {"holderIdentity": holder, "renewTime": renewed}}


@pytest.mark.parametrize(
    ("found", "ready", "message"),
    [
        (lease(1), True, "one leads"),
        (lease(31), False, "one led until 2026-11-21T09:59:29+00:00"),
        (lease(1, ""), False, NO_LEADER),
        ({"spec": {}}, False, NO_LEADER),
        (None, False, NO_LEADER),
    ],
)
def test_the_lease_tells_whether_a_controller_leads(found, ready, message):
    part = controller_of(found, NOW)
    assert (part.ready, message in part.message) == (ready, True)


async def test_usage_lists_the_projects_of_the_caller(testbed):
    await testbed.add_project("crew")
    await testbed.add_project("idle")
    await add_finished_run(testbed, "run-a", (100, 20))
    await account_all(testbed)
    found = await testbed.get("/v1/usage")
    assert [(row["project"], row["runs"], row["prompt_tokens"]) for row in found["data"]] == [
        ("idle", 0, 0),
        ("crew", 1, 100),
    ]
    bound = testbed.create_key("read", projects=["idle"])
    found = await testbed.get("/v1/usage", bearer=bound)
    assert [row["project"] for row in found["data"]] == ["idle"] and found["pagination"]["total"] == 1
    before = await testbed.get(f"/v1/usage?to={(NOW - timedelta(days=1)).date()}")
    assert [row["runs"] for row in before["data"]] == [0, 0]


async def test_whoami_tells_scopes_and_projects(testbed):
    bound = testbed.create_key("run", projects=["crew"])
    found = (await testbed.get("/v1/whoami", bearer=bound))["data"]
    assert found["scopes"] is None
    assert found["projects"] == [{"project": "crew", "scopes": ["read", "run"]}]
    found = (await testbed.get("/v1/whoami"))["data"]
    assert (found["scopes"], found["projects"], found["expires_at"]) == (["admin", "read"], [], None)
    assert found["principal"].startswith("key:")
