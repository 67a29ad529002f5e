"""The pages of the installation in a browser, for its administrators only."""

import re

import pytest_asyncio
from playwright.async_api import expect

from tests.browser import story
from tests.browser.console_page import ConsolePage
from tests.unit.api.v1.test_installation import QUEUED
from tests.unit.api.v1.test_usage import account_all


@pytest_asyncio.fixture(loop_scope="session")
async def tides(testbed):
    """A project with a run, a build that runs and one that waits."""
    await story.add_project(testbed)
    await story.add_run(testbed)
    await testbed.add_deployment("dep-running", story.PROJECT, "Building", {"message": "Add Severn"})
    await testbed.add_deployment("dep-queued", story.PROJECT, "Pending", conditions=[QUEUED])
    await account_all(testbed)


async def test_health_shows_parts_queue_and_builds(tides, console):
    page = console.page
    await page.get_by_role("link", name="Settings").click()
    await expect(page.get_by_role("heading", name="Health", level=1)).to_be_visible()
    # No kube-apiserver answers the local API, and the page says so.
    await expect(page.get_by_role("row", name="kube-apiserver does not work")).to_be_visible()
    await expect(page.get_by_role("row", name="index works")).to_be_visible()
    await expect(page.get_by_role("row", name="controller unknown")).to_be_visible()
    builds = page.locator(".card").filter(has_text="Builds")
    await expect(builds).to_contain_text("1 of 2 slots in use")
    await expect(builds).to_contain_text("1 waiting")
    await page.get_by_role("link", name="dep_running").click()
    await expect(page.get_by_role("heading", name="dep_running")).to_be_visible()


async def test_every_address_of_the_keys_marks_settings_as_current(testbed, console):
    for address in ("#/installation/api-keys", "#/settings/api-keys"):
        page = await console.show(address)
        await expect(page.get_by_role("heading", name="API keys", level=1)).to_be_visible()
        current = page.get_by_role("navigation", name="Main").locator("[aria-current=page]")
        await expect(current).to_have_text("Settings")


async def test_key_with_an_expiry_is_created(console):
    page = await console.show("#/installation/api-keys")
    await page.get_by_label("Name").fill("CI")
    await page.get_by_label("Expires").fill("2099-01-31")
    async with page.expect_request(lambda request: request.method == "POST") as request:
        await page.get_by_role("button", name="Create API Key").click()
    made = (await request.value).post_data_json
    assert made == {"name": "CI", "scopes": ["read"], "expires_at": "2099-01-31T00:00:00Z"}
    row = page.get_by_role("row").filter(has_text="CI")
    await expect(row.locator("time").last).to_have_attribute("title", re.compile("31 Jan 2099"))


async def test_usage_by_project_and_day(tides, console):
    page = await console.show("#/installation/usage")
    row = page.get_by_role("row").filter(has_text=story.PROJECT)
    await expect(row).to_contain_text("8,046")
    await page.get_by_label("From (UTC)").fill("2026-11-01")
    await page.get_by_label("to", exact=True).fill("2026-11-20")
    await page.get_by_role("button", name="Show").click()
    await expect(row).not_to_contain_text("8,046")
    await row.get_by_role("link").click()
    await expect(page.get_by_role("heading", name=story.PROJECT)).to_be_visible()


async def test_audit_log_is_filtered(testbed, tides, console):
    for name in ("first", "second"):
        status, _, _ = await testbed.call("POST", "/v1/api-keys", {"name": name, "scopes": ["read"]})
        assert status == 201
    page = await console.show("#/installation/audit")
    rows = page.get_by_role("row").filter(has_text="POST /v1/api-keys")
    await expect(rows).to_have_count(2)
    await page.get_by_label("Actor").fill("key:nobody")
    await page.get_by_role("button", name="Filter").click()
    await expect(rows).to_have_count(0)
    await page.get_by_label("Actor").fill("")
    await page.get_by_label("From (UTC)").fill("2026-11-21")
    await page.get_by_label("to", exact=True).fill("2026-11-21")
    await page.get_by_role("button", name="Filter").click()
    await expect(rows).to_have_count(2)
    await page.get_by_label("Project").fill(story.PROJECT)
    await page.get_by_role("button", name="Filter").click()
    await expect(page.get_by_text("No changes.")).to_be_visible()


async def test_keys_of_projects_see_less(testbed, tides, page):
    url = str(testbed.client.make_url("/console/"))
    reader = ConsolePage(page, url, testbed.create_key("read", projects=[story.PROJECT]))
    await reader.sign_in()
    await expect(page.get_by_role("link", name="Runs")).to_be_visible()
    await expect(page.get_by_role("link", name="Settings")).to_have_count(0)
    await reader.show("#/installation/audit")
    await expect(page.get_by_role("alert")).to_contain_text("Page not found")
    await page.get_by_role("button", name="Sign out").click()
    admin = ConsolePage(page, url, testbed.create_key("admin", projects=[story.PROJECT]))
    await admin.sign_in("#/installation")
    tabs = page.get_by_role("navigation", name="Settings").get_by_role("link")
    await expect(tabs).to_have_text(["Usage", "API Keys", "Audit log"])
    await expect(page.get_by_role("heading", name="Usage")).to_be_visible()
