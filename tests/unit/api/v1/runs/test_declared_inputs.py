"""Inputs of runs against the schema of their deployment, without an apiserver: what passes is a 503."""

import pytest

SCHEMA = {
    "type": "object",
    "properties": {"topic": {"type": "string"}, "depth": {"type": "integer", "default": 3}},
    "required": ["topic"],
}


@pytest.fixture
async def add_crew(testbed):
    async def add_crew(**inputs):
        plan = {"entrypoint": "main:kickoff", "entrypoints": {"main": "main:kickoff", "other": "main:other"}}
        await testbed.add_project("crew", activeDeployment="dep-a", activatedAt="2026-11-21T10:00:00Z")
        await testbed.add_deployment("dep-a", "crew", plan={**plan, **inputs})

    return add_crew


async def start(testbed, **body):
    status, answer, _ = await testbed.call("POST", "/v1/runs", {"deployment": "crew", **body})
    return status, answer["error"]


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "input.topic"),
        ({"input": {"topic": 3}}, "input.topic"),
        ({"input": {"topic": "tides", "depth": "x"}, "entrypoint": "main"}, "input.depth"),
    ],
)
async def test_an_input_that_does_not_fit_the_declaration_is_refused(testbed, add_crew, body, field):
    await add_crew(inputs={"schema": SCHEMA, "declared": True})
    status, error = await start(testbed, **body)
    assert (status, error["code"], error["details"]["field"]) == (400, "invalid_request", field)
    assert field in error["message"]


@pytest.mark.parametrize(
    ("declared", "body"),
    [
        (True, {"input": {"topic": "tides", "more": 1}}),
        (True, {"input": {}, "entrypoint": "other"}),
        (False, {"input": {"topic": 3}}),
    ],
)
async def test_other_inputs_pass(testbed, add_crew, declared, body):
    await add_crew(inputs={"schema": SCHEMA, "declared": declared})
    assert (await start(testbed, **body))[0] == 503
    shown = (await testbed.get("/v1/deployments/dep_a/inputs"))["data"]
    assert shown == {"schema": SCHEMA, "declared": declared}


async def test_an_unknown_input_is_any_object(testbed, add_crew):
    await add_crew()
    assert (await testbed.get("/v1/deployments/dep-a/inputs"))["data"] == {
        "schema": {"type": "object"},
        "declared": False,
    }
    assert (await start(testbed, input={"a": 1}))[0] == 503


SCHEDULE = {"cron": "0 7 * * *"}


@pytest.mark.parametrize("change", [{}, {"input": {"topic": 3}}, {"input": {"topic": "a", "depth": "x"}}])
async def test_a_schedule_is_refused_in_the_words_of_a_run(testbed, add_crew, change):
    await add_crew(inputs={"schema": SCHEMA, "declared": True})
    _, expected = await start(testbed, **change)
    assert expected["details"]["field"].startswith("input.")
    status, answer, _ = await testbed.call("PUT", "/v1/projects/crew/schedules/daily", {**SCHEDULE, **change})
    assert (status, answer["error"]) == (400, expected)
    schedules = [{"name": "daily", **SCHEDULE, **change}]
    status, answer, _ = await testbed.call("PATCH", "/v1/projects/crew", {"schedules": schedules})
    assert status == 400
    assert answer["error"]["details"]["field"] == f"schedules.0.{expected['details']['field']}"
    assert answer["error"]["message"] == expected["message"].replace("input", "schedules.0.input", 1)


@pytest.mark.parametrize(
    "change",
    [
        {"input": {"topic": "tides"}},
        {"entrypoint": "other"},
        # It starts nothing until it is resumed.
        {"suspend": True},
        # It is there already: set for an earlier deployment.
        {"cron": "0 8 * * *"},
    ],
)
async def test_other_schedules_pass(testbed, add_crew, change):
    await add_crew(inputs={"schema": SCHEMA, "declared": True})
    await testbed.update_spec("crew", schedules=[{"name": "daily", "cron": "0 8 * * *"}])
    body = {**SCHEDULE, **change}
    assert (await testbed.call("PUT", "/v1/projects/crew/schedules/daily", body))[0] == 503
    change = {"schedules": [{"name": "daily", **body}]}
    assert (await testbed.call("PATCH", "/v1/projects/crew", change))[0] == 503


@pytest.mark.parametrize("entrypoints", [{"main": "main:kickoff"}, {}])
async def test_a_schedule_with_an_unknown_name_is_refused(testbed, add_crew, entrypoints):
    await add_crew(entrypoints=entrypoints)
    _, expected = await start(testbed, entrypoint="nope")
    assert expected["details"]["field"] == "entrypoint" and "'nope'" in expected["message"]
    body = {**SCHEDULE, "entrypoint": "nope"}
    status, answer, _ = await testbed.call("PUT", "/v1/projects/crew/schedules/daily", body)
    assert (status, answer["error"]) == (400, expected)
    change = {"schedules": [{"name": "daily", **body}]}
    status, answer, _ = await testbed.call("PATCH", "/v1/projects/crew", change)
    assert (status, answer["error"]["message"]) == (400, expected["message"])
    assert answer["error"]["details"]["field"] == "schedules.0.entrypoint"


@pytest.mark.parametrize(
    "change", [{"entrypoint": "nope", "suspend": True}, {"entrypoint": "old"}, {"entrypoint": "main:other"}]
)
async def test_a_schedule_keeps_an_entrypoint_of_earlier(testbed, add_crew, change):
    await add_crew()
    await testbed.update_spec("crew", schedules=[{"name": "daily", **SCHEDULE, "entrypoint": "old"}])
    body = {**SCHEDULE, **change}
    assert (await testbed.call("PUT", "/v1/projects/crew/schedules/daily", body))[0] == 503


@pytest.mark.parametrize("deadline", ["0s", "0h0m", "5 minutes", "1.5h"])
async def test_a_wrong_starting_deadline_is_refused(testbed, add_crew, deadline):
    await add_crew()
    body = {**SCHEDULE, "starting_deadline": deadline}
    for method, path, sent, parent in (
        ("PUT", "/v1/projects/crew/schedules/daily", body, ""),
        ("PATCH", "/v1/projects/crew", {"schedules": [{"name": "daily", **body}]}, "schedules.0."),
    ):
        status, answer, _ = await testbed.call(method, path, sent)
        field = f"{parent}starting_deadline"
        assert (status, answer["error"]["details"]) == (400, {"field": field})
        assert answer["error"]["message"] == (
            f"{field} must be a duration above zero in hours, minutes and seconds, "
            "for example 90s, 30m or 1h30m"
        )
