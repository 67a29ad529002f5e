"""What tests of the console in a browser share: a page over a local API with a real store.

All of them share one event loop, since they share one browser: an asynchronous fixture here needs
`pytest_asyncio.fixture(loop_scope="session")`.
"""

from collections.abc import AsyncIterator
from datetime import datetime
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page, expect

from tests.browser.console_page import ConsolePage
from tests.testbed.chromium import HEADLESS_SHELL, checked_page, chromium
from tests.unit.api.conftest import (
    ApiTestbed,
    clock,
    empty,
    open_testbed,
    patient_timeouts,
    settings,
    stopped_windows,
)

__all__ = ["clock", "empty", "patient_timeouts", "settings", "stopped_windows"]

WAIT_MILLISECONDS = 60_000
expect.set_options(timeout=WAIT_MILLISECONDS)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run the tests in the event loop of their fixtures."""
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent):
            item.add_marker(pytest.mark.asyncio(loop_scope="session"), append=False)


@pytest_asyncio.fixture(loop_scope="session")
async def testbed(
    tmp_path: Path,
    clock: list[datetime],
    empty: Path,
    settings: dict[str, str],
) -> AsyncIterator[ApiTestbed]:
    async with open_testbed(tmp_path, clock, empty, settings) as opened:
        yield opened


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def browser(request: pytest.FixtureRequest) -> AsyncIterator[Browser]:
    """The browser of the session, or the program that a test's parameter names."""
    async with chromium(WAIT_MILLISECONDS, getattr(request, "param", HEADLESS_SHELL)) as opened:
        yield opened


@pytest_asyncio.fixture(loop_scope="session")
async def page(browser: Browser) -> AsyncIterator[Page]:
    """A page of which each error, and each violation of its policy, fails the test."""
    size = {"width": 1280, "height": 900}
    async with checked_page(browser, WAIT_MILLISECONDS, viewport=size, locale="en-GB") as made:
        yield made


@pytest_asyncio.fixture(loop_scope="session")
async def console(testbed: ApiTestbed, page: Page) -> ConsolePage:
    """The console, signed in with an admin key."""
    made = ConsolePage(page, str(testbed.client.make_url("/console/")), testbed.admin)
    await made.sign_in()
    return made
