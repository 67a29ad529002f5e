"""The console by the keyboard alone, in a browser: from signing in to the error of a step."""

import asyncio

from playwright.async_api import expect

from tests.browser import story

MOST_TABS = 80


async def tab_to(page, locator):
    """Press Tab until the element has the focus, and check that a mark shows it."""
    for _ in range(MOST_TABS):
        await page.keyboard.press("Tab")
        if await locator.evaluate("(element) => element === document.activeElement"):
            style = await locator.evaluate("(element) => getComputedStyle(element).outlineStyle")
            assert style == "solid"
            return
    raise AssertionError(f"{MOST_TABS} times Tab did not reach {locator}")


async def test_a_step_is_reached_from_the_sign_in(testbed, page):
    await story.add_history(testbed)
    await story.add_run(testbed)
    await page.goto(str(testbed.client.make_url("/console/")))
    await expect(page.get_by_label("API key")).to_be_visible()
    await tab_to(page, page.get_by_label("API key"))
    await page.keyboard.type(testbed.admin)
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("heading", name="Projects")).to_be_visible()
    await tab_to(page, page.get_by_role("link", name="Runs", exact=True))
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("heading", name="Runs")).to_be_visible()
    await tab_to(page, page.get_by_role("link", name=story.RUN_ID))
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("listbox", name="Events")).to_contain_text("completed after 16.2 s")
    await tab_to(page, page.get_by_role("tree", name="Timeline"))
    failed = page.get_by_role("treeitem", name="tool read_table , failed")
    await page.keyboard.press("Home")
    for _ in range(5):
        await page.keyboard.press("ArrowDown")
    await page.keyboard.press("Enter")
    await expect(failed).to_have_attribute("aria-selected", "true")
    panel = page.get_by_role("complementary", name="Details")
    await expect(panel.get_by_role("alert")).to_contain_text("no rows after 2026-03-31")
    await tab_to(page, panel.get_by_role("button", name="Show its events"))
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("listbox", name="Events").get_by_role("option")).to_have_count(3)


async def test_focus_stays_when_a_stream_ends(testbed, console):
    await story.add_history(testbed)
    page = await console.show(f"#/projects/{story.PROJECT}/deployments")
    released = asyncio.Event()

    async def hold(route):
        await released.wait()
        await route.continue_()

    await page.route("**/v1/deployments/dep_second/logs**", hold)
    await tab_to(page, page.get_by_role("link", name="dep_second"))
    await page.keyboard.press("Enter")
    button = page.get_by_role("button", name="Roll back…")
    await expect(button).to_be_visible()
    await tab_to(page, button)
    released.set()
    await expect(page.get_by_role("log")).to_have_text("No log.")
    await page.wait_for_load_state("networkidle")
    await expect(button).to_be_focused()


async def test_a_deployment_is_rolled_back_by_the_keyboard(testbed, console):
    await story.add_history(testbed)
    page = await console.show(f"#/projects/{story.PROJECT}/deployments")
    await tab_to(page, page.get_by_role("link", name="dep_second"))
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("heading", name="dep_second")).to_be_visible()
    await tab_to(page, page.get_by_role("button", name="Roll back…"))
    await page.keyboard.press("Enter")
    dialog = page.get_by_role("dialog", name="Roll back to Add Severn?")
    await expect(dialog).to_contain_text("This undoes 2 deployments")
    async with page.expect_request(lambda request: request.method == "POST") as sent:
        await tab_to(page, dialog.get_by_role("button", name="Roll back"))
        await page.keyboard.press("Enter")
    assert (await sent.value).url.endswith("/v1/deployments/dep_second/rollback")
    await expect(dialog.get_by_role("alert")).to_be_visible()
    await page.keyboard.press("Escape")
    await expect(dialog).to_have_count(0)
