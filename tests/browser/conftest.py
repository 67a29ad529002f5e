"""What tests of the console in a browser share: a page over a local API with a real store."""

import shutil
from collections.abc import AsyncIterator

import pytest
from playwright.async_api import Browser, Page, async_playwright, expect

from tests.browser.console_page import ConsolePage
from tests.unit.api.conftest import clock, empty, issuer, settings, testbed

__all__ = ["clock", "empty", "issuer", "settings", "testbed"]

WAIT_MILLISECONDS = 60_000
expect.set_options(timeout=WAIT_MILLISECONDS)


@pytest.fixture
async def browser() -> AsyncIterator[Browser]:
    program = shutil.which("chromium")
    if program is None:
        pytest.skip("there is no chromium on PATH: `make tools` installs it")
    async with async_playwright() as playwright:
        opened = await playwright.chromium.launch(
            executable_path=program, args=["--no-sandbox"], timeout=WAIT_MILLISECONDS
        )
        yield opened
        await opened.close()


@pytest.fixture
async def page(browser: Browser) -> AsyncIterator[Page]:
    """A page of which each error, and each violation of its policy, fails the test."""
    context = await browser.new_context(viewport={"width": 1280, "height": 900}, locale="en-GB")
    context.set_default_timeout(WAIT_MILLISECONDS)
    made = await context.new_page()
    errors: list[str] = []
    made.on("pageerror", lambda error: errors.append(str(error)))
    made.on("console", lambda message: errors.append(message.text) if "Security" in message.text else None)
    yield made
    assert errors == []
    await context.close()


@pytest.fixture
async def console(testbed, page: Page) -> ConsolePage:
    """The console, signed in with an admin key."""
    made = ConsolePage(page, str(testbed.client.make_url("/console/")), testbed.admin)
    await made.sign_in()
    return made
