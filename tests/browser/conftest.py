"""What tests of the console in a browser share: a page over a local API with a real store."""

from collections.abc import AsyncIterator

import pytest
from playwright.async_api import Browser, Page, expect

from tests.browser.console_page import ConsolePage
from tests.testbed.chromium import checked_page, chromium
from tests.unit.api.conftest import clock, empty, issuer, settings, testbed

__all__ = ["clock", "empty", "issuer", "settings", "testbed"]

WAIT_MILLISECONDS = 60_000
expect.set_options(timeout=WAIT_MILLISECONDS)


@pytest.fixture
async def browser() -> AsyncIterator[Browser]:
    async with chromium(WAIT_MILLISECONDS) as opened:
        yield opened


@pytest.fixture
async def page(browser: Browser) -> AsyncIterator[Page]:
    """A page of which each error, and each violation of its policy, fails the test."""
    size = {"width": 1280, "height": 900}
    async with checked_page(browser, WAIT_MILLISECONDS, viewport=size, locale="en-GB") as made:
        yield made


@pytest.fixture
async def console(testbed, page: Page) -> ConsolePage:
    """The console, signed in with an admin key."""
    made = ConsolePage(page, str(testbed.client.make_url("/console/")), testbed.admin)
    await made.sign_in()
    return made
