"""The tabs of a project in a browser: notifications with their deliveries, schedules."""

from datetime import timedelta

import pytest
import pytest_asyncio
from playwright.async_api import expect

from api.store.sql.schema import projects
from tests.browser import story
from tests.browser.test_accessibility import violations


@pytest_asyncio.fixture(loop_scope="session")
async def receiver(testbed):
    """A project with a run, a receiver with a delivery, and a schedule."""
    await story.add_project(testbed)
    await story.add_run(testbed)
    await story.add_receiver(testbed)


async def test_delivery_is_sent_again(testbed, receiver, console):
    page = await console.show(f"#/projects/{story.PROJECT}/notifications")
    await expect(page.get_by_role("row").filter(has_text="https://hooks.example.com/tides")).to_contain_text(
        "run.failed"
    )
    row = page.get_by_role("row").filter(has_text=story.RUN_ID)
    await expect(row).to_contain_text("pending")
    testbed.clock[0] += timedelta(hours=2)
    await page.get_by_role("button", name="Redeliver msg_first").click()
    await expect(page.get_by_text("msg_first will be sent again.")).to_be_visible()
    listed = await testbed.get(f"/v1/projects/{story.PROJECT}/deliveries")
    assert listed["data"][0]["next_attempt_at"] == testbed.clock[0].isoformat().replace("+00:00", "Z")
    await row.get_by_role("link").click()
    await expect(page.get_by_role("heading", name=story.RUN_ID)).to_be_visible()


async def test_failing_receiver_is_marked(testbed, receiver, console):
    row = await testbed.store.projects.get(story.PROJECT)
    async with testbed.store.database.write() as connection:
        await connection.execute(
            projects.update().where(projects.c.uid == row.uid).values(failing_notifications=["chat"])
        )
    page = await console.show(f"#/projects/{story.PROJECT}/notifications")
    await expect(page.get_by_role("row").filter(has_text="https://hooks.example.com/tides")).to_contain_text(
        "failing"
    )


async def test_schedule_shows_its_next_time_and_is_suspended(receiver, console):
    page = await console.show(f"#/projects/{story.PROJECT}/schedules")
    row = page.get_by_role("row").filter(has_text="mornings")
    await expect(row).to_contain_text("22 Nov 2026")
    await page.get_by_role("button", name="Suspend mornings").click()
    # Without a cluster behind the API nothing can change, and the page says so.
    await expect(page.get_by_role("alert")).to_be_visible()


@pytest.mark.parametrize("click", [True, False], ids=["edited", "typed"])
async def test_saved_schedule_keeps_what_the_form_does_not_have(testbed, receiver, console, click):
    kept = {"entrypoint": "report", "labels": {"team": "tides"}, "suspend": True}
    written = {
        "name": "evenings",
        "cron": "0 19 * * *",
        "timeZone": "UTC",
        "input": {"topic": "moons"},
        **kept,
    }
    await testbed.update_spec(
        story.PROJECT, schedules=[{**written, "concurrencyPolicy": "Forbid", "startingDeadline": "10m"}]
    )
    page = await console.show(f"#/projects/{story.PROJECT}/schedules")
    row = page.get_by_role("row").filter(has_text="evenings")
    for text in ("entrypoint report", '{"topic":"moons"}', "Forbid", "deadline 10m", "team=tides"):
        await expect(row).to_contain_text(text)
    if click:
        await page.get_by_role("button", name="Edit evenings").click()
        await expect(page.get_by_label("Minute, hour")).to_be_focused()
        await expect(page.get_by_label("Minute, hour")).to_have_value("0 19 * * *")
        await expect(page.get_by_label("topic")).to_have_value("moons")
        assert await violations(page) == []
    else:
        await page.get_by_label("Name").fill("evenings")
        await page.get_by_label("Time zone").fill("UTC")
        await page.get_by_label("Input, a JSON object").fill('{"topic": "moons"}')
    await page.get_by_label("Minute, hour").fill("0 20 * * *")
    async with page.expect_request(lambda request: request.method == "PUT") as sent:
        await page.get_by_role("button", name="Set schedule").click()
    more = {"concurrency_policy": "Forbid", "starting_deadline": "10m"}
    assert (await sent.value).post_data_json == {
        "cron": "0 20 * * *",
        "time_zone": "UTC",
        "input": {"topic": "moons"},
        **kept,
        **more,
    }


async def test_schedule_is_removed_after_a_question(receiver, console):
    page = await console.show(f"#/projects/{story.PROJECT}/schedules")
    page.on("dialog", lambda dialog: dialog.accept())
    async with page.expect_request(lambda request: request.method == "DELETE") as sent:
        await page.get_by_role("button", name="Remove mornings").click()
    assert (await sent.value).url.endswith(f"/v1/projects/{story.PROJECT}/schedules/mornings")


async def test_runs_of_a_status_stay_filtered_on_the_next_page(testbed, console):
    """The second page keeps the filter.

    Slow: creates 32 Runs in the cluster.
    """
    await story.add_project(testbed)
    for number in range(32):
        phase = "Failed" if number else "Succeeded"
        await story.add_past_run(testbed, f"run-past{number:02}", phase, 1000)
    page = await console.show(f"#/projects/{story.PROJECT}/runs")
    await page.get_by_label("Status").select_option("failed")
    await expect(page.get_by_text("page 1, 31 in total")).to_be_visible()
    await page.get_by_role("link", name="older →").click()
    await expect(page.get_by_text("page 2, 31 in total")).to_be_visible()
    await expect(page.get_by_role("row").filter(has_text="run_past")).to_have_count(1)


async def test_added_packages_are_shown_and_changed(testbed, console):
    spec = {**story.SPEC, "build": {"requirements": ["tidewatch>=2", "soundings"]}}
    await testbed.add_project(story.PROJECT, spec)
    page = await console.show(f"#/projects/{story.PROJECT}/deployments")
    packages = page.get_by_label("Packages that its source imports")
    await expect(packages).to_have_value("tidewatch>=2\nsoundings")
    assert await violations(page) == []
    await packages.fill(" tidewatch>=3 \n\n")
    async with page.expect_request(lambda request: request.method == "PATCH") as sent:
        await page.get_by_role("button", name="Set packages").click()
    request = await sent.value
    assert request.url.endswith(f"/v1/projects/{story.PROJECT}")
    assert request.post_data_json == {"build": {"requirements": ["tidewatch>=3"]}}
    # Without a cluster behind the API nothing can change, and the page says so.
    await expect(page.get_by_role("alert")).to_be_visible()
    await packages.fill("")
    async with page.expect_request(lambda request: request.method == "PATCH") as sent:
        await page.get_by_role("button", name="Set packages").click()
    assert (await sent.value).post_data_json == {"build": {"requirements": None}}


async def test_new_project_adds_packages(testbed, console):
    page = await console.show("#/projects")
    await page.get_by_label("Name").fill(story.PROJECT)
    await page.get_by_label("Packages that its source imports").fill("tidewatch>=2\nsoundings")
    async with page.expect_request(lambda request: request.method == "POST") as sent:
        await page.get_by_role("button", name="Create project").click()
    made = (await sent.value).post_data_json
    assert made == {"name": story.PROJECT, "build": {"requirements": ["tidewatch>=2", "soundings"]}}
