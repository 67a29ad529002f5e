"""Schedules as an API resource and as a field of the Project object."""

import pytest

from crds.kinds import PROJECT

PATH = "/v1/projects/crew/schedules"
SPEC = {
    "cron": "0 7 * * MON-FRI",
    "time_zone": "Europe/Berlin",
    "input": {"someTopic": {"innerKey": 1, "none": None, "list": [None]}},
    "concurrency_policy": "Forbid",
    "starting_deadline": "10m",
}


async def test_a_schedule_is_set_replaced_and_removed(testbed):
    await testbed.call("POST", "/v1/projects", {"name": "crew"})
    made = await testbed.data("PUT", f"{PATH}/weekdays", SPEC)
    assert made == {
        "name": "weekdays",
        **SPEC,
        "entrypoint": None,
        "labels": None,
        "suspend": False,
        **dict.fromkeys(("last_time", "last_run_id", "next_time", "message")),
    }
    await testbed.data("PUT", f"{PATH}/nightly", {"cron": "@daily"})
    stored = (await testbed.kube.get(PROJECT, "crew"))["spec"]["schedules"]
    assert stored[0] == {
        "name": "weekdays",
        "cron": "0 7 * * MON-FRI",
        "timeZone": "Europe/Berlin",
        "input": SPEC["input"],
        "concurrencyPolicy": "Forbid",
        "startingDeadline": "10m",
    }
    await testbed.data("PUT", f"{PATH}/weekdays", {"cron": "0 8 * * *", "suspend": True})
    stored = (await testbed.kube.get(PROJECT, "crew"))["spec"]["schedules"]
    assert stored[0] == {"name": "weekdays", "cron": "0 8 * * *", "suspend": True}
    listed = await testbed.data("GET", PATH)
    assert [(one["name"], one["suspend"]) for one in listed] == [("weekdays", True), ("nightly", False)]
    for _ in range(2):
        assert (await testbed.call("DELETE", f"{PATH}/weekdays"))[0] == 204
    assert [one["name"] for one in await testbed.data("GET", PATH)] == ["nightly"]
    assert (await testbed.call("DELETE", f"{PATH}/nightly"))[0] == 204
    assert "schedules" not in (await testbed.kube.get(PROJECT, "crew"))["spec"]


@pytest.mark.parametrize(
    ("change", "field", "word"),
    [
        ({"cron": "0 0 31 2 *"}, "cron", "day-of-month"),
        ({"cron": "0 0 * *"}, "cron", "five fields"),
        ({"time_zone": "Europe/Bonn"}, "time_zone", "Europe/Berlin"),
        ({"starting_deadline": "soon"}, "starting_deadline", "90s"),
    ],
)
async def test_an_impossible_schedule_is_refused_with_its_field(testbed, change, field, word):
    await testbed.call("POST", "/v1/projects", {"name": "crew"})
    status, found, _ = await testbed.call("PUT", f"{PATH}/weekdays", {**SPEC, **change})
    assert (status, found["error"]["details"]["field"]) == (400, field)
    assert word in found["error"]["message"]


async def test_schedules_of_a_project_are_checked_like_single_ones(testbed):
    body = {
        "name": "crew",
        "schedules": [{"name": "a", "cron": "@daily"}, {"name": "b", "cron": "0 0 31 2 *"}],
    }
    status, found, _ = await testbed.call("POST", "/v1/projects", body)
    assert (status, found["error"]["details"]["field"]) == (400, "schedules.1.cron")
    made = await testbed.call("POST", "/v1/projects", {**body, "schedules": body["schedules"][:1]})
    assert made[1]["data"]["schedules"] == [{"name": "a", "cron": "@daily"}]
    status, found, _ = await testbed.call("PATCH", "/v1/projects/crew", {"schedules": body["schedules"]})
    assert (status, found["error"]["details"]["field"]) == (400, "schedules.1.cron")
    large = {"cron": "@daily", "input": {"text": "x" * 16 * 1024}}
    status, found, _ = await testbed.call("PUT", f"{PATH}/a", large)
    assert (status, found["error"]["details"]["field"]) == (413, "input")


async def key(testbed, *scopes):
    """Return the headers of a new key."""
    made = await testbed.data("POST", "/v1/api-keys", {"name": "k", "scopes": list(scopes)})
    return {"Authorization": f"Bearer {made['key']}"}


async def test_an_entrypoint_that_is_no_name_needs_deploy(testbed):
    await testbed.call("POST", "/v1/projects", {"name": "crew"})
    runner, deployer, both = [
        await key(testbed, *scopes) for scopes in (("run",), ("deploy",), ("run", "deploy"))
    ]
    named = {"cron": "@daily", "entrypoint": "weekly"}
    code = {"cron": "@daily", "entrypoint": "os:getcwd"}
    assert (await testbed.call("PUT", f"{PATH}/a", named, headers=runner))[0] == 200
    status, found, _ = await testbed.call("PUT", f"{PATH}/b", code, headers=runner)
    assert (status, found["error"]["details"]["required_scope"]) == (403, "deploy")
    assert (await testbed.call("PUT", f"{PATH}/b", code, headers=both))[0] == 200
    # They start runs.
    patch = {"schedules": [{"name": "c", "cron": "@daily"}]}
    status, found, _ = await testbed.call("PATCH", "/v1/projects/crew", patch, headers=deployer)
    assert (status, found["error"]["details"]["required_scope"]) == (403, "run")
    assert (await testbed.call("PATCH", "/v1/projects/crew", patch, headers=both))[0] == 200


async def test_a_project_has_at_most_fifty_schedules(testbed):
    schedules = [{"name": f"s{index}", "cron": "@daily"} for index in range(50)]
    await testbed.call("POST", "/v1/projects", {"name": "crew", "schedules": schedules})
    status, found, _ = await testbed.call("PUT", f"{PATH}/more", {"cron": "@daily"})
    assert (status, "at most 50" in found["error"]["message"]) == (409, True)
    assert (await testbed.call("PUT", f"{PATH}/s3", {"cron": "@hourly"}))[0] == 200
