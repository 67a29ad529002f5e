"""Questions of a run on its page: forms made from choices and schemas, and the answers that they send."""

from datetime import timedelta

import pytest_asyncio
from playwright.async_api import expect

from api.store.index.runs.input_requests import Question

SCHEMA = {
    "type": "object",
    "required": ["name", "berths"],
    "properties": {
        "name": {"type": "string", "minLength": 1},
        "berths": {"type": "integer", "minimum": 1},
        "open": {"type": "boolean"},
        "side": {"enum": ["port", "starboard"]},
    },
}


@pytest_asyncio.fixture(loop_scope="session")
async def ask(testbed):
    """Return a function that lets a running run ask."""
    await testbed.add_project("demo", activeDeployment="dep-a", activatedAt="2026-11-21T10:00:00Z")
    await testbed.add_deployment("dep-a", "demo")
    raw = await testbed.add_run("run-asks", "demo")
    await testbed.claim_run(raw)

    async def ask(question):
        now = testbed.clock[0]
        await testbed.store.input_requests.open("run-asks", question, now, now + timedelta(hours=1))

    return ask


async def stored(testbed, request):
    item = await testbed.store.input_requests.get("run-asks", request)
    return item.answer


async def test_choice_is_sent_and_its_form_goes(testbed, console, ask):
    await ask(Question("q1", "Which side?", None, ["port", "starboard"]))
    page = await console.show("#/runs/run_asks")
    await expect(page.get_by_role("heading", name="The crew asks")).to_be_visible()
    await page.get_by_role("combobox", name="Answer").select_option(label="starboard")
    await page.get_by_role("button", name="Answer").click()
    await expect(page.get_by_role("heading", name="The crew asks")).to_have_count(0)
    assert await stored(testbed, "q1") == {"value": "starboard"}


async def test_form_of_an_object_has_its_fields_and_shows_what_does_not_fit(testbed, console, ask):
    await ask(Question("q1", "Which harbour?", SCHEMA, None))
    page = await console.show("#/runs/run_asks")
    await page.get_by_label("berths").fill("3")
    await page.get_by_role("button", name="Answer").click()
    await expect(page.get_by_role("region", name="Questions").get_by_role("alert")).to_contain_text(
        "value.name"
    )
    await page.get_by_label("name").fill("Bergen")
    await page.get_by_label("side").select_option("starboard")
    await page.get_by_role("button", name="Answer").click()
    await expect(page.get_by_role("heading", name="The crew asks")).to_have_count(0)
    expected = {"name": "Bergen", "berths": 3, "side": "starboard"}
    assert await stored(testbed, "q1") == {"value": expected}


async def test_question_without_a_schema_takes_json_or_text(testbed, console, ask):
    await ask(Question("q1", "One?", None, None))
    await ask(Question("q2", "Two?", None, None))
    page = await console.show("#/runs/run_asks")
    for request, text in (("q1", '{"go": true}'), ("q2", "go on")):
        await page.locator(f"#answer-{request}").fill(text)
        await page.locator("form", has=page.locator(f"#answer-{request}")).get_by_role("button").click()
        await expect(page.locator(f"#answer-{request}")).to_have_count(0)
    assert await stored(testbed, "q1") == {"value": {"go": True}}
    assert await stored(testbed, "q2") == {"value": "go on"}


async def test_caller_that_may_only_read_sees_the_question_without_a_form(testbed, console, ask):
    await ask(Question("q1", "Which side?", None, ["port", "starboard"]))
    page = console.page
    await page.get_by_role("button", name="Sign out").click()
    console.key = testbed.create_key("read")
    await console.sign_in()
    await console.show("#/runs/run_asks")
    questions = page.get_by_role("region", name="Questions")
    await expect(questions).to_contain_text("Which side?")
    await expect(questions).to_contain_text("The scope run is needed to answer.")
    await expect(questions.get_by_role("button", name="Answer")).to_have_count(0)
