"""The search of the console, the comparison of runs, and a service that goes away, in a browser."""

import re
from datetime import datetime, timedelta

import pytest_asyncio
from playwright.async_api import expect

from tests.browser import story


@pytest_asyncio.fixture(loop_scope="session")
async def tides(testbed, console):
    """The console with a project, its history and a run."""
    await story.add_history(testbed)
    await story.add_run(testbed)
    return console


async def test_search_opens_by_key_and_finds_names_and_ids(tides):
    page = await tides.show("#/runs")
    await page.keyboard.press("/")
    dialog = page.get_by_role("dialog", name="Search")
    await expect(dialog.get_by_role("link")).to_have_count(15)
    await page.keyboard.type("tides past11")
    await expect(dialog.get_by_role("link")).to_have_count(1)
    await page.keyboard.press("ArrowDown")
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("heading", name="run_past11")).to_be_visible()
    await page.keyboard.press("Control+k")
    await page.keyboard.type("dep-second")
    await expect(dialog.get_by_role("link")).to_have_count(1)
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("heading", name="dep_second")).to_be_visible()
    await expect(dialog).to_have_count(0)


async def test_search_closes_at_escape_and_with_its_page(tides):
    page = await tides.show("#/runs")
    dialog = page.get_by_role("dialog", name="Search")
    await page.keyboard.press("Control+k")
    await page.keyboard.type("past")
    await expect(dialog.get_by_role("link").first).to_be_visible()
    await page.keyboard.press("Escape")
    await expect(dialog).to_have_count(0)
    await tides.show("#/projects")
    await page.keyboard.press("Control+k")
    await expect(dialog).to_be_visible()
    await page.go_back()
    await expect(page.get_by_role("heading", name="Runs")).to_be_visible()
    await expect(dialog).to_have_count(0)


async def test_id_that_is_not_listed_is_opened(tides):
    page = await tides.show("#/runs")
    await page.get_by_role("button", name="Search").click()
    await page.keyboard.type("run_gone")
    await page.get_by_role("dialog").get_by_role("link").click()
    await expect(page.get_by_role("alert")).to_contain_text("not found")


async def test_two_runs_are_compared(testbed, tides):
    await story.add_run(testbed, "run-other")
    page = await tides.show(f"#/runs/{story.RUN_ID}/compare?with=run_other")
    # The first one is the task's; those of its calls of models follow.
    row = page.get_by_role("row").filter(has_text="Report writer: Write the report").first
    await expect(row.get_by_role("cell")).to_have_text(
        ["Report writer: Write the report", "4.8 s4,025 tokens", "4.8 s4,025 tokens", "same"]
    )
    await page.get_by_label("Compare with").select_option(label=None, index=0)
    await expect(page.get_by_role("row").filter(has_text="Duration")).to_contain_text("16.2 s")


async def test_run_beyond_the_choices_is_named(testbed, tides):
    await story.add_run(testbed, "run-old", offset=-86400)
    for number in range(50):
        await story.add_past_run(testbed, f"run-more{number:02}", "Succeeded", 1000)
    page = await tides.show(f"#/runs/{story.RUN_ID}/compare?with=run_old")
    await expect(page.get_by_role("columnheader", name="run_old").first).to_be_visible()
    await expect(page.get_by_label("Compare with")).to_have_value("run_old")


async def test_address_of_no_page_has_a_title_of_its_own(tides):
    page = await tides.show("#/runs")
    await tides.show("#/bogus")
    await expect(page.get_by_role("alert")).to_contain_text("Page not found")
    await expect(page).to_have_title("Page not found · Crewyard")


async def test_ages_grow_while_a_page_is_open(testbed, console):
    await story.add_project(testbed)
    page = await console.show("#/deployments/dep_tides")
    ages = page.locator("time")
    created, count = await ages.last.get_attribute("datetime"), await ages.count()
    await page.clock.install(time=datetime.fromisoformat(created) + timedelta(seconds=5))
    await page.reload()
    await expect(ages).to_have_text([re.compile(r"^\d+ s ago$")] * count)
    await page.clock.fast_forward("10:00")
    await expect(ages).to_have_text([re.compile(r"^1\d min ago$")] * count)
    title = await ages.last.get_attribute("title")
    assert "UTC" in title or "GMT" in title


async def test_lost_connection_is_said_and_ends(testbed, console):
    await story.add_project(testbed)
    raw = await story.add_run(testbed, phase=None)
    page, lose = console.page, True

    async def answer(route):
        await (route.abort() if lose else route.continue_())

    # The stream of a service that is down: each connection fails until it is up again.
    await page.route("**/events", answer)
    await console.show(f"#/runs/{story.RUN_ID}")
    note = page.locator("#connection")
    await expect(note).to_contain_text("Reconnecting")
    lose = False
    await expect(page.get_by_role("listbox", name="Events")).to_contain_text("Report writer completed")
    await expect(note).to_be_hidden()
    result = {"outcome": "succeeded", "durationMs": 18000, "output": "1"}
    await testbed.finish_run(raw, "Succeeded", durationMs=18000, result=result)
    await expect(page.get_by_role("listbox", name="Events")).to_contain_text("completed after 18.0 s")
