"""The form that starts a run, made from the schema of the deployment's input, in a browser.

No kube-apiserver answers the local API: a run that passes all checks is refused with a 503.
"""

import pytest
from playwright.async_api import expect

from tests.browser import story
from tests.browser.console_page import ConsolePage
from tests.browser.test_accessibility import violations

SCHEMA = {
    "type": "object",
    "properties": {
        "topic": {"type": "string", "description": "What the report is about."},
        "pages": {"type": "integer", "default": 3},
        "style": {"enum": ["short", "long"], "default": "long"},
        "tone": {"enum": ["dry", "warm"]},
        "draft": {"type": "boolean", "default": True},
        "places": {"type": "array"},
        "notes": {"type": "string"},
    },
    "required": ["topic", "places"],
}


async def add(testbed, schema, declared=True):
    await testbed.add_project(story.PROJECT, story.SPEC, activeDeployment=story.DEPLOYMENT)
    inputs = {"inputs": {"schema": schema, "declared": declared}} if schema else {}
    await testbed.add_deployment(story.DEPLOYMENT, story.PROJECT, plan={"entrypoint": "main:run", **inputs})


async def sent(page):
    """Start the run; return the input that the page sent."""
    async with page.expect_request(lambda request: request.method == "POST") as request:
        await page.get_by_role("button", name="Start run").click()
    return (await request.value).post_data_json["input"]


def beside(page, label):
    """The field with this label and what is written beside it."""
    return page.locator(".field").filter(has=page.get_by_label(label))


async def test_form_has_a_field_for_each_part_with_its_default(testbed, console):
    await add(testbed, SCHEMA)
    page = await console.show(f"#/projects/{story.PROJECT}/runs?new=yes")
    await expect(beside(page, "topic")).to_contain_text("What the report is about.")
    await expect(page.get_by_label("pages")).to_have_value("3")
    await expect(page.get_by_label("style")).to_have_value("1")
    await expect(page.get_by_label("draft")).to_be_checked()
    assert await violations(page) == []
    await page.get_by_label("topic").fill("tides")
    await page.get_by_label("places").fill('["Fundy"]')
    await page.get_by_label("pages").fill("5")
    # Optional fields that are left empty are not sent.
    expected = {"topic": "tides", "pages": 5, "style": "long", "draft": True, "places": ["Fundy"]}
    assert await sent(page) == expected
    await expect(page.get_by_role("alert")).to_contain_text("try again")


async def test_typed_input_is_there_again_after_the_session_has_ended(testbed, page):
    async def new_key():
        body = {"name": "short", "scopes": ["read", "run"]}
        return (await testbed.call("POST", "/v1/api-keys", body))[1]["data"]

    await add(testbed, SCHEMA)
    first, second = await new_key(), await new_key()
    console = ConsolePage(page, str(testbed.client.make_url("/console/")), first["key"])
    await console.sign_in()
    await console.show(f"#/projects/{story.PROJECT}/runs?new=yes")
    await page.get_by_label("topic").fill("tides")
    await page.get_by_label("places").fill('["Fundy"]')
    await page.get_by_label("draft").uncheck()
    await page.get_by_label("style").select_option("short")
    assert (await testbed.call("DELETE", f"/v1/api-keys/{first['id']}"))[0] == 204
    await page.get_by_role("button", name="Start run").click()
    await expect(page.get_by_text("The session has ended")).to_be_visible()
    await page.get_by_label("API key").fill(second["key"])
    await page.get_by_role("button", name="Sign in").click()
    await expect(page.get_by_label("topic")).to_have_value("tides")
    expected = {"topic": "tides", "pages": 3, "style": "short", "draft": False, "places": ["Fundy"]}
    assert await sent(page) == expected


async def test_a_text_or_null_is_a_text_field(testbed, console):
    """Optional fields of pydantic allow null."""
    optional = {"anyOf": [{"type": "string"}, {"type": "null"}], "default": None, "title": "Region"}
    properties = {"region": optional, "depth": {"type": ["number", "null"]}, "year": {"anyOf": []}}
    await add(testbed, {"type": "object", "properties": properties, "required": ["depth"]})
    page = await console.show(f"#/projects/{story.PROJECT}/runs?new=yes")
    assert await sent(page) == {"depth": None}
    await page.get_by_label("Region").fill("Fundy")
    await page.get_by_label("depth").fill("16.5")
    assert await sent(page) == {"region": "Fundy", "depth": 16.5}
    spec = {"input": {"region": None, "depth": 2}}
    await testbed.add_run(story.RUN, story.PROJECT, story.DEPLOYMENT, spec=spec)
    await console.show(f"#/runs/{story.RUN_ID}")
    await page.get_by_text("Run again").click()
    await expect(page.get_by_label("depth")).to_have_value("2")
    assert await sent(page) == spec["input"]


LARGE = 1234567890123456789


async def test_integers_keep_all_digits(testbed, console):
    schema = {"type": "object", "properties": {"id": {"type": "integer"}, "places": {"type": "array"}}}
    await add(testbed, schema)
    # JavaScript would round it.
    spec = {"input": {"id": LARGE, "places": [LARGE]}}
    await testbed.add_run(story.RUN, story.PROJECT, story.DEPLOYMENT, spec=spec)
    page = await console.show(f"#/runs/{story.RUN_ID}")
    panel = page.get_by_role("complementary", name="Details")
    await expect(panel).to_contain_text(f'"id": {LARGE}')
    await page.get_by_text("Run again").click()
    await expect(page.get_by_label("id", exact=False).first).to_have_value(str(LARGE))
    assert await sent(page) == spec["input"]
    await page.get_by_role("button", name="Edit as JSON").click()
    assert await sent(page) == spec["input"]
    await console.show(f"#/projects/{story.PROJECT}/runs?new=yes")
    await page.get_by_label("id", exact=False).first.fill(str(LARGE + 1))
    assert await sent(page) == {"id": LARGE + 1}


async def test_error_is_beside_its_field(testbed, console):
    await add(testbed, SCHEMA)
    page = await console.show(f"#/projects/{story.PROJECT}/runs?new=yes")
    places = page.get_by_label("places")
    await places.fill("[Fundy")
    await page.get_by_role("button", name="Start run").click()
    await expect(beside(page, "places").get_by_role("alert")).to_contain_text("is not JSON")
    await places.fill('{"of": "Fundy"}')
    await page.get_by_role("button", name="Start run").click()
    # The service checks the rest, and names the field.
    await expect(beside(page, "places").get_by_role("alert")).to_contain_text("input.places must be an array")
    await expect(places).to_have_attribute("aria-invalid", "true")
    await expect(places).to_be_focused()
    assert await violations(page) == []
    await places.fill("[]")
    assert (await sent(page))["places"] == []
    await expect(beside(page, "places").get_by_role("alert")).to_have_count(0)


async def test_without_a_schema_the_input_is_json(testbed, console):
    await add(testbed, None)
    page = await console.show(f"#/projects/{story.PROJECT}")
    await page.get_by_label("Input, a JSON object").fill('{"topic": "moons"}')
    await expect(page.get_by_role("button", name="Edit as fields")).to_be_hidden()
    assert await sent(page) == {"topic": "moons"}


async def test_repeated_run_has_its_own_values_and_further_parts(testbed, console):
    schema = {"type": "object", "properties": {"pages": {"type": "integer", "default": 3}}}
    await add(testbed, schema, declared=False)
    await testbed.add_run(story.RUN, story.PROJECT, story.DEPLOYMENT)
    page = await console.show(f"#/runs/{story.RUN_ID}")
    await page.get_by_text("Run again").click()
    await expect(page.get_by_label("topic")).to_have_value("tides")
    await page.get_by_label("pages").fill("4")
    await page.get_by_role("button", name="Edit as JSON").click()
    await page.get_by_role("button", name="Edit as fields").click()
    assert await sent(page) == {"topic": "tides", "pages": 4}


@pytest.mark.parametrize("status", ["Active", "Superseded"])
async def test_deployment_has_the_form(testbed, console, status):
    await add(testbed, SCHEMA)
    await testbed.add_deployment("dep-b", story.PROJECT, status, plan={"inputs": {"schema": SCHEMA}})
    page = await console.show("#/deployments/dep_b")
    await page.get_by_text("New run").click()
    await page.get_by_label("topic").fill("tides")
    await page.get_by_label("places").fill("[]")
    assert (await sent(page))["topic"] == "tides"


async def test_schedule_has_the_fields_of_the_active_deployment(testbed, console):
    await add(testbed, SCHEMA)
    page = await console.show(f"#/projects/{story.PROJECT}/schedules")
    await page.get_by_label("Name").fill("weekdays")
    await page.get_by_label("Minute, hour").fill("0 7 * * MON-FRI")
    await page.get_by_label("topic").fill("tides")
    await page.get_by_label("places").fill("[]")
    async with page.expect_request(lambda request: request.method == "PUT") as request:
        await page.get_by_role("button", name="Set schedule").click()
    made = (await request.value).post_data_json
    assert made["input"] == {"topic": "tides", "pages": 3, "style": "long", "draft": True, "places": []}


NAMED = {"entrypoint": "main:run", "entrypoints": {"daily": "main:daily", "weekly": "main:weekly"}}


async def body_sent(page):
    """Start the run; return the body that the page sent."""
    async with page.expect_request(lambda request: request.method == "POST") as request:
        await page.get_by_role("button", name="Start run").click()
    return (await request.value).post_data_json


async def test_named_entrypoint_is_chosen_and_keeps_the_input(testbed, console):
    await testbed.add_project(story.PROJECT, story.SPEC, activeDeployment=story.DEPLOYMENT)
    plan = {**NAMED, "inputs": {"schema": SCHEMA, "declared": True}}
    await testbed.add_deployment(story.DEPLOYMENT, story.PROJECT, plan=plan)
    page = await console.show(f"#/projects/{story.PROJECT}/runs?new=yes")
    choice = page.get_by_label("Entrypoint")
    await expect(choice.get_by_role("option")).to_have_text(["the deployment's own", "daily", "weekly"])
    await page.get_by_label("topic").fill("moons")
    await page.get_by_label("places").fill("[]")
    await choice.select_option("weekly")
    # The schema is that of the deployment's own entrypoint: another one has the values, without its notes.
    await expect(page.get_by_label("topic")).to_have_value("moons")
    await expect(page.get_by_text("What the report is about.")).to_have_count(0)
    assert await violations(page) == []
    body = await body_sent(page)
    assert (body["entrypoint"], body["input"]["topic"]) == ("weekly", "moons")
    await choice.select_option("the deployment's own")
    await expect(page.get_by_text("What the report is about.")).to_be_visible()
    assert "entrypoint" not in await body_sent(page)


@pytest.mark.parametrize(
    ("before", "chosen"), [("daily", "weekly"), ("pkg.crew:other", "daily"), (None, "daily")]
)
async def test_run_is_repeated_with_another_entrypoint(testbed, console, before, chosen):
    await testbed.add_project(story.PROJECT, story.SPEC, activeDeployment=story.DEPLOYMENT)
    await testbed.add_deployment(story.DEPLOYMENT, story.PROJECT, plan=NAMED)
    spec = {"entrypoint": before} if before else {}
    await testbed.add_run(story.RUN, story.PROJECT, story.DEPLOYMENT, spec=spec)
    page = await console.show(f"#/runs/{story.RUN_ID}")
    await page.get_by_text("Run again").click()
    choice = page.get_by_label("Entrypoint")
    await expect(choice).to_have_value(before or "")
    assert "entrypoint" not in await body_sent(page)
    await choice.select_option(chosen)
    body = await body_sent(page)
    assert (body["entrypoint"], body["input"]) == (chosen, {"topic": "tides"})
    if before:
        await choice.select_option("the deployment's own")
        assert (await body_sent(page))["entrypoint"] is None
