"""The console in a real browser, against the installed service."""

import json
import os
import re
import secrets

import pytest
import pytest_asyncio
from playwright.async_api import Page, expect

from tests.testbed.chromium import checked_page, chromium

URL = os.environ.get("CREWYARD_URL", "")
SECONDS = 120_000
RELOADS_TIMEOUT_MS = 300_000
expect.set_options(timeout=SECONDS)


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def browser():
    async with chromium(SECONDS) as opened:
        yield opened


@pytest_asyncio.fixture(loop_scope="session")
async def page(browser):
    """A page whose errors fail the test."""
    async with checked_page(browser, SECONDS, viewport={"width": 1200, "height": 850}) as found:
        yield found


async def sign_in(page: Page, hash_: str = "") -> None:
    await page.goto(f"{URL}/console/{hash_}")
    await page.get_by_label("API key").fill(os.environ["CREWYARD_API_KEY"])
    await page.get_by_role("button", name="Sign in").click()
    await expect(page.get_by_role("button", name="Sign out")).to_be_visible()


async def test_key_is_checked_and_kept_in_the_tab_only(page):
    await page.goto(URL)
    await page.get_by_label("API key").fill("crw_wrong")
    await page.get_by_role("button", name="Sign in").click()
    await expect(page.get_by_role("alert")).to_contain_text("Invalid API key")
    await sign_in(page)
    await expect(page.get_by_role("heading", name="Projects")).to_be_visible()
    kept = await page.evaluate("() => [JSON.stringify(localStorage), document.cookie, location.href].join()")
    assert os.environ["CREWYARD_API_KEY"] not in kept
    other = await page.context.new_page()
    await other.goto(f"{URL}/console/")
    await expect(other.get_by_label("API key")).to_be_visible()
    await other.close()
    await page.get_by_role("button", name="Sign out").click()
    await expect(page.get_by_label("API key")).to_be_visible()
    assert await page.evaluate("() => sessionStorage.length") == 0


async def test_page_with_a_missing_file_reloads(page):
    """The page reloads more often: Chromium also drops requests while interfaces of pods come and go.

    Slow: from the fourth reload on the page waits for some seconds, up to 99 in all.
    """
    left = [3]

    async def lose(route):
        left[0] -= 1
        await (route.abort() if left[0] >= 0 else route.continue_())

    await page.route("**/dom.js", lose)
    await page.goto(f"{URL}/console/")
    await expect(page.get_by_label("API key")).to_be_visible(timeout=RELOADS_TIMEOUT_MS)
    assert left[0] < 0
    assert await page.evaluate("() => sessionStorage.length") == 0


async def test_run_is_started_and_artifacts_are_shown(page, crew):
    await sign_in(page, f"#/deployments/{crew.deployment}")
    await expect(page.get_by_label("Build log")).to_contain_text("image ")
    await page.get_by_text("New run").click()
    made = await crew.testbed.post(
        "/v1/runs", {"deployment": crew.deployment, "entrypoint": "files:page", "input": {"a": 1}}
    )
    await page.goto(f"{URL}/console/#/runs/{made['id']}")
    await expect(page.get_by_label("Events", exact=True)).to_contain_text("completed after")
    await expect(page.get_by_text("succeeded").first).to_be_visible()
    row = page.get_by_role("row").filter(has_text="page.md")
    await row.get_by_role("button", name="Preview page.md").click()
    await expect(page.locator(".shown")).to_contain_text("A heading")
    assert await page.locator(".shown script, .shown img").count() == 0
    assert await page.evaluate("() => window.stolen === undefined")

    await page.get_by_text("Run again").click()
    await page.get_by_role("button", name="Edit as JSON").click()
    await page.get_by_label("Input, a JSON object").fill("[1")
    await page.get_by_role("button", name="Start run").click()
    await expect(page.get_by_role("alert")).to_contain_text("not JSON")
    await page.get_by_label("Input, a JSON object").fill('{"b": 2}')
    await page.get_by_role("button", name="Start run").click()
    await page.wait_for_function(f"() => !location.hash.includes({json.dumps(made['id'])})")
    await expect(page.locator("pre").filter(has_text='"b": 2').first).to_be_visible()


async def test_run_is_canceled(page, crew):
    run = await crew.start("sleeps", input={"seconds": 300})
    await sign_in(page, f"#/runs/{run}")
    await expect(page.get_by_label("Events", exact=True)).to_contain_text("started")
    await page.get_by_role("button", name="Cancel").click()
    await expect(page.get_by_label("Events", exact=True)).to_contain_text("canceled after")


@pytest.mark.nightly
async def test_ten_thousand_events_are_shown(page, crew):
    """Slow: a crew prints ten thousand lines."""
    run = await crew.start("lines", input={"count": 10_000})
    await sign_in(page, f"#/runs/{run}")
    await expect(page.get_by_label("Events", exact=True)).to_contain_text("completed after")
    await page.get_by_label("Kind").select_option("Log lines")
    await expect(page.get_by_text(re.compile(r"^10.000 of "))).to_be_visible()


async def test_key_is_created_shown_once_and_revoked(page):
    name = f"made in a browser {secrets.token_hex(4)}"
    await sign_in(page, "#/installation/api-keys")
    await page.get_by_label("Name").fill(name)
    await page.get_by_label("run", exact=True).check()
    await page.get_by_role("button", name="Create API Key").click()
    key = await page.locator(".secret").inner_text()
    assert key.startswith("crw_")
    await page.reload()
    await expect(page.get_by_role("cell", name=name, exact=True)).to_be_visible()
    assert key not in await page.content()
    page.on("dialog", lambda dialog: dialog.accept())
    await page.get_by_role("button", name=f"Revoke {name}").click()
    await expect(page.get_by_role("cell", name=name, exact=True)).to_have_count(0)


@pytest.mark.nightly
async def test_keyboard_and_narrow_screen(page, crew):
    await page.set_viewport_size({"width": 360, "height": 700})
    await page.goto(f"{URL}/console/")
    await page.get_by_label("API key").fill(os.environ["CREWYARD_API_KEY"])
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("heading", name="Projects")).to_be_visible()
    await page.get_by_role("link", name="Runs", exact=True).focus()
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("heading", name="Runs")).to_be_visible()
    wider = "() => document.documentElement.scrollWidth > document.documentElement.clientWidth"
    for address in ("#/projects", "#/runs", f"#/deployments/{crew.deployment}", "#/installation/api-keys"):
        await page.goto(f"{URL}/console/{address}")
        await expect(page.get_by_role("heading").first).to_be_visible()
        assert not await page.evaluate(wider), address
