"""Lists that show what happens while they are open, without a reload, in a browser."""

import asyncio
import time

import pytest
from playwright.async_api import expect

from tests.browser import story

ADDRESSES = ["#/runs", f"#/projects/{story.PROJECT}/runs"]


@pytest.mark.parametrize("address", ADDRESSES)
async def test_runs_appear_and_end(testbed, console, address):
    await story.add_project(testbed)
    page = await console.show(address)
    await expect(page.get_by_text("No runs.")).to_be_visible()
    raw = await story.add_run(testbed, phase=None)
    row = page.get_by_role("row").filter(has_text=story.RUN_ID)
    await expect(row).to_contain_text("running")
    await testbed.finish_run(raw, "Failed", error={"reason": "CrewError", "message": "no tables"})
    await expect(row).to_contain_text("failed")


async def test_deployment_appears_and_becomes_active(testbed, console):
    await story.add_project(testbed)
    page = await console.show(f"#/projects/{story.PROJECT}/deployments")
    await page.get_by_label("Packages that").fill("tidy-tides")
    raw = await testbed.add_deployment("dep-next", story.PROJECT, "Building")
    row = page.get_by_role("row").filter(has_text="dep_next")
    await expect(row).to_contain_text("building")
    await testbed.change_deployment(raw, phase="Active", image="r/x@sha256:0")
    await testbed.change_project(story.PROJECT, activeDeployment="dep-next")
    await expect(row).to_contain_text("active")
    # What is typed stays.
    await expect(page.get_by_label("Packages that")).to_have_value("tidy-tides")


async def test_overview_follows_a_deployment_and_runs(testbed, console):
    """Slow: each change appears after the next poll of the page."""
    await story.add_history(testbed)
    page = await console.show(f"#/projects/{story.PROJECT}")
    await expect(page.get_by_text("of the last 12 ended runs")).to_be_visible()
    raw = await testbed.add_deployment("dep-next", story.PROJECT, "Building", spec={"message": "Next one"})
    await expect(page.get_by_role("heading", name="Newest deployment")).to_be_visible()
    await testbed.change_deployment(raw, phase="Active", image="r/x@sha256:0")
    await testbed.change_project(story.PROJECT, activeDeployment="dep-next")
    await expect(page.get_by_role("heading", name="Newest deployment")).to_have_count(0)
    await expect(page.get_by_role("link", name="Next one")).to_be_visible()
    await story.add_past_run(testbed, "run-late", "Failed", 1000)
    await expect(page.get_by_text("of the last 13 ended runs")).to_be_visible()


async def test_schedule_shows_its_next_time(testbed, console):
    await story.add_project(testbed)
    await testbed.change_project(story.PROJECT, schedules=[])
    await testbed.update_spec(
        story.PROJECT, schedules=[{"name": "mornings", "cron": "0 7 * * *", "timeZone": "UTC"}]
    )
    page = await console.show(f"#/projects/{story.PROJECT}/schedules")
    row = page.get_by_role("row").filter(has_text="mornings")
    await expect(row.get_by_role("cell").nth(2)).to_have_text("–")
    await testbed.change_project(story.PROJECT, **story.SCHEDULED)
    await expect(row.get_by_role("cell").nth(2)).to_contain_text("22 Nov 2026")


async def test_view_that_is_drawn_again_reads_no_more_than_before(testbed, console):
    await story.add_project(testbed)
    await testbed.update_spec(
        story.PROJECT, schedules=[{"name": "mornings", "cron": "0 7 * * *", "timeZone": "UTC"}]
    )
    page, drawn, asked = console.page, 4, []

    async def answer(route):
        if route.request.method == "PUT":
            await route.fulfill(json={"data": {}})
        else:
            asked.append(route.request.url)
            await route.continue_()

    await page.route("**/schedules**", answer)
    await page.clock.install()
    await page.reload()
    await console.show(f"#/projects/{story.PROJECT}/schedules")
    async with asyncio.timeout(60):
        for _ in range(drawn):
            known = len(asked)
            await page.get_by_role("button", name="Suspend mornings").click()
            # One of the change, which keeps what the service has, and one of the view that is drawn again.
            while len(asked) < known + 2:
                await page.wait_for_timeout(10)
    before, steps, started = len(asked), 0, time.monotonic()
    async with asyncio.timeout(60):
        # The last view sets its timer once the answer to its request is drawn.
        while len(asked) == before:
            await page.clock.run_for(5_000)
            await page.wait_for_timeout(500)
            steps += 1
    # One in each five seconds. Real time passes, too: on a busy machine more than a moment.
    assert len(asked) - before <= steps + 1 + (time.monotonic() - started) // 5
