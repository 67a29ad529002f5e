"""The page of a run in a browser: timeline, panel, events with filters, artifacts, the form to run again."""

import pytest_asyncio
from playwright.async_api import expect

from crds import objects
from tests.browser import story


@pytest_asyncio.fixture(loop_scope="session")
async def run_page(page, testbed, console):
    """The page of the finished run."""
    await story.add_project(testbed)
    await story.add_run(testbed)
    await console.show(f"#/runs/{story.RUN_ID}")
    await expect(page.get_by_role("listbox", name="Events")).to_contain_text("completed after 16.2 s")
    await expect(page.get_by_role("treeitem")).to_have_count(10)
    return page


def step(page, name):
    return page.get_by_role("treeitem", name=name)


async def test_timeline_nests_agents_tasks_and_tools(run_page):
    page = run_page
    names = await page.get_by_role("treeitem").evaluate_all(
        "rows => rows.map((row) => [row.ariaLevel, row.getAttribute('aria-label')])"
    )
    assert names == [
        ["1", "run Run , succeeded, 16.2 s, 9597 tokens"],
        ["2", "agent Harbour researcher , succeeded, 10.9 s, 5572 tokens"],
        ["3", f"task {story.FIND} , succeeded, 6.8 s, 3052 tokens"],
        ["4", "model mistral-small , succeeded, 1.1 s, 908 tokens"],
        ["4", "tool search , succeeded, 1.7 s"],
        ["4", "tool read_table , failed, 1.3 s"],
        ["3", f"task {story.READ} , succeeded, 4.0 s, 2520 tokens"],
        ["4", "tool read_table , succeeded, 2.5 s"],
        ["2", f"agent Report writer {story.WRITE}, succeeded, 4.8 s, 4025 tokens"],
        ["3", "model mistral-large , succeeded, 3.6 s, 4025 tokens"],
    ]


async def test_click_shows_input_output_and_error_of_a_step(run_page):
    page = run_page
    panel = page.get_by_role("complementary", name="Details")
    await expect(panel).to_contain_text('"widest": "Fundy"')
    await step(page, "tool search").click()
    await expect(panel).to_contain_text('"query": "widest tides"')
    await expect(panel).to_contain_text("Granville")
    await step(page, "tool read_table , failed").click()
    await expect(panel.get_by_role("alert")).to_contain_text("no rows after 2026-03-31")
    await step(page, "model mistral-large").click()
    terms = panel.get_by_role("definition")
    await expect(terms.nth(1)).to_have_text("3.6 s")
    await expect(terms.nth(2)).to_have_text("3,120 in, 905 out")
    await step(page, "run Run").click()
    await expect(panel).to_contain_text('"topic": "tides"')


async def test_timeline_is_used_by_keyboard(run_page):
    page = run_page
    await page.get_by_role("tree", name="Timeline").focus()
    for key in ("Home", "ArrowDown", "ArrowLeft"):
        await page.keyboard.press(key)
    await expect(step(page, "tool search")).to_have_count(0)
    await page.keyboard.press("ArrowRight")
    await expect(step(page, "tool search")).to_have_count(1)
    for key in ("End", "ArrowUp", "Enter"):
        await page.keyboard.press(key)
    panel = page.get_by_role("complementary", name="Details")
    await expect(panel).to_contain_text("The widest are in Fundy")


async def test_events_are_filtered_by_step_level_kind_and_text(run_page):
    page = run_page
    events = page.get_by_role("listbox", name="Events").get_by_role("option")
    whole = len(story.STORY) + 2
    await expect(events).to_have_count(whole)
    await page.get_by_label("Level").select_option("Warnings and errors")
    await expect(events).to_have_count(3)
    await page.get_by_label("Level").select_option("Errors")
    await expect(events).to_have_count(2)
    await page.get_by_label("Level").select_option("All levels")
    await page.get_by_label("Kind").select_option("Log lines")
    await expect(events).to_have_count(3)
    await page.get_by_label("Kind").select_option("All events")
    await page.get_by_label("Search the events").fill("SEVERN")
    await expect(events).to_have_count(4)
    await page.get_by_label("Search the events").fill("")
    await expect(events).to_have_count(whole)
    await step(page, "tool read_table , failed").click()
    await page.get_by_role("button", name="Show its events").click()
    await expect(events).to_have_count(3)
    await page.get_by_role("button", name="Show the events of all steps").click()
    await expect(events).to_have_count(whole)
    await events.filter(has_text="ends in March").click()
    await expect(page.get_by_role("complementary", name="Details")).to_contain_text("warning")


async def test_one_event_is_counted_in_the_singular(testbed, console):
    await story.add_project(testbed)
    raw = await testbed.add_run(story.RUN, story.PROJECT, story.DEPLOYMENT)
    await testbed.claim_run(raw)
    page = await console.show(f"#/runs/{story.RUN_ID}")
    await expect(page.get_by_text("1 event", exact=True)).to_be_visible()


async def test_page_of_a_waiting_run_shows_why_it_waits_now(testbed, console):
    await story.add_project(testbed)
    raw = await testbed.add_run(story.RUN, story.PROJECT, story.DEPLOYMENT)
    page = await console.show(f"#/runs/{story.RUN_ID}")
    cause = {"type": "Succeeded", "status": "Unknown", "reason": "Unschedulable", "message": "no node fits"}
    raw["metadata"]["resourceVersion"] = str(int(raw["metadata"]["resourceVersion"]) + 1000)
    raw["status"]["conditions"] = [cause]
    await testbed.store.run_writer.observe(objects.Run(raw), testbed.clock[0])
    await expect(page.get_by_role("definition").filter(has_text="no node fits")).to_be_visible()


async def test_run_is_followed_live(testbed, console):
    await story.add_project(testbed)
    raw = await story.add_run(testbed, phase=None)
    page = await console.show(f"#/runs/{story.RUN_ID}")
    events = page.get_by_role("listbox", name="Events")
    await expect(events).to_contain_text("Report writer completed")
    await story.append(testbed, story.RUN, [(17, "agent.started", {"agent": "Checker", "task": "Check"})])
    await expect(step(page, "agent Checker Check, running")).to_be_visible()
    result = {"outcome": "succeeded", "durationMs": 18000, "output": "1"}
    await testbed.finish_run(raw, "Succeeded", durationMs=18000, result=result)
    await expect(step(page, "agent Checker Check, canceled")).to_be_visible()
    await expect(events).to_contain_text("completed after 18.0 s")


async def test_stream_that_breaks_in_the_middle_loses_and_repeats_nothing(testbed, console):
    await story.add_project(testbed)
    raw = await testbed.add_run(story.RUN, story.PROJECT, story.DEPLOYMENT)
    await testbed.claim_run(raw)
    await testbed.append_log_lines(story.RUN, *(f"line {n}" for n in range(3000)))
    result = {"outcome": "succeeded", "durationMs": 1, "output": "1"}
    await testbed.finish_run(raw, "Succeeded", durationMs=1, result=result)
    page, cuts = console.page, []

    async def cut(route):
        if cuts:
            await route.continue_()
            return
        response = await route.fetch()
        whole = await response.body()
        cuts.append(len(whole) // 2)
        await route.fulfill(response=response, body=whole[: cuts[0]])

    await page.route("**/events", cut)
    async with page.expect_request(lambda one: "last-event-id" in one.headers) as second:
        await console.show(f"#/runs/{story.RUN_ID}")
    assert 1000 < int((await second.value).headers["last-event-id"]) < 2000
    await expect(page.get_by_text("3,002 events")).to_be_visible()
    events = page.get_by_role("listbox", name="Events")
    await events.evaluate("(list) => { list.scrollTop = 0; }")
    await expect(events.get_by_text("line 0", exact=True)).to_be_visible()
    await page.get_by_label("Search the events").fill("line 1500")
    await expect(events.get_by_role("option")).to_have_count(1)


async def test_page_of_a_live_run_is_ready_before_the_run_ends(testbed, console):
    await story.add_project(testbed)
    await story.add_run(testbed, phase=None)
    page = console.page
    await page.goto(f"{console.url}#/runs/{story.RUN_ID}")
    await page.reload()
    await expect(page.get_by_role("listbox", name="Events")).to_contain_text("Report writer completed")
    # Without this mark, the page counts as failed to load and loads itself again.
    await expect(page.locator("html")).to_have_attribute("data-ready", "yes")


async def test_form_to_run_again_has_the_input(run_page):
    page = run_page
    await page.get_by_text("Run again").click()
    await expect(page.get_by_label("topic")).to_have_value("tides")
    await page.get_by_label("topic").fill("moons")
    await page.get_by_role("button", name="Edit as JSON").click()
    text = page.get_by_label("Input, a JSON object")
    await expect(text).to_have_value('{\n  "topic": "moons"\n}')
    await text.fill("[1]")
    await page.get_by_role("button", name="Start run").click()
    await expect(page.get_by_role("alert")).to_contain_text("not a JSON object")


async def test_waiting_run_can_be_repeated_once_its_deployment_is_known(testbed, console):
    await story.add_project(testbed)
    raw = await testbed.add_run(story.RUN, story.PROJECT, None)
    page = console.page
    await page.goto(f"{console.url}#/runs/{story.RUN_ID}")
    await expect(page.get_by_role("heading", name="Artifacts")).to_be_visible()
    await expect(page.get_by_text("Run again")).to_have_count(0)
    raw["metadata"]["resourceVersion"] = str(int(raw["metadata"]["resourceVersion"]) + 1)
    raw["status"]["deployment"] = story.DEPLOYMENT
    await testbed.store.run_writer.observe(objects.Run(raw), testbed.clock[0])
    await expect(page.get_by_text("Run again")).to_be_visible()


async def test_hundred_thousand_events_are_few_elements(testbed, console):
    """Slow: the store writes a hundred thousand events."""
    count = 100_000
    await story.add_project(testbed)
    raw = await testbed.add_run(story.RUN, story.PROJECT, story.DEPLOYMENT)
    await testbed.claim_run(raw)
    for start in range(0, count, 1000):
        await testbed.append_log_lines(story.RUN, *(f"line {n}" for n in range(start, start + 1000)))
    result = {"outcome": "succeeded", "durationMs": 1, "output": "1"}
    await testbed.finish_run(raw, "Succeeded", durationMs=1, result=result)
    page = await console.show(f"#/runs/{story.RUN_ID}")
    events = page.get_by_role("listbox", name="Events")
    await expect(events).to_contain_text("completed after")
    await expect(page.get_by_text(f"{count + 2:,} events")).to_be_visible()
    assert await events.get_by_role("option").count() < 100
    await events.evaluate("(list) => { list.scrollTop = list.scrollHeight / 2; }")
    await expect(events.get_by_text("line 50000", exact=True)).to_be_visible()
    await page.get_by_label("Search the events").fill("line 77777")
    await expect(events.get_by_role("option")).to_have_count(1)


async def test_large_output_is_named_as_its_artifact(testbed, console):
    await story.add_project(testbed)
    for name, seconds in ((story.RUN, 0), ("run-other", 60)):
        raw = await story.add_run(testbed, name, phase=None, offset=seconds)
        made = {"name": "output.json", "size": 40_000, "content_type": "application/json", "partial": False}
        await story.append(testbed, name, [(16.1, "artifact", made)], seconds)
        result = {"outcome": "succeeded", "durationMs": 16_200}
        await testbed.finish_run(raw, "Succeeded", durationMs=16_200, result=result)
    page = await console.show(f"#/runs/{story.RUN_ID}")
    panel = page.get_by_role("complementary", name="Details")
    await expect(panel).to_contain_text("The output is the artifact output.json")
    await expect(panel).not_to_contain_text("null")
    await console.show(f"#/runs/{story.RUN_ID}/compare?with=run_other")
    await expect(page.get_by_text("The output is the artifact output.json")).to_have_count(2)
