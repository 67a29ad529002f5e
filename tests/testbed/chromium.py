"""Chromium of this machine, for tests of the console and of the documentation site."""

import contextlib
import shutil
from collections.abc import AsyncIterator
from typing import Any

import pytest
from playwright.async_api import Browser, ConsoleMessage, Page, async_playwright

HEADLESS_SHELL = "chromium-headless-shell"
"""Takes about half of Chromium's processor time, and has no PDF viewer."""
CHROMIUM = "chromium"


@contextlib.asynccontextmanager
async def chromium(timeout_milliseconds: float, program: str = HEADLESS_SHELL) -> AsyncIterator[Browser]:
    """Open a browser; skip the test where there is none."""
    path = shutil.which(program)
    if path is None:
        pytest.skip(f"{program} is not on PATH: `make tools` installs it")
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(
            executable_path=path, args=["--no-sandbox"], timeout=timeout_milliseconds
        )
        yield browser
        await browser.close()


@contextlib.asynccontextmanager
async def checked_page(browser: Browser, timeout_milliseconds: float, **context: Any) -> AsyncIterator[Page]:
    """Open a page in a context of its own; each error, and each violation of its policy, fails the test."""
    opened = await browser.new_context(**context)
    opened.set_default_timeout(timeout_milliseconds)
    page = await opened.new_page()
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("console", lambda message: errors.append(message.text) if _is_defect(message) else None)
    page.on("requestfailed", lambda request: print("failed:", request.url, request.failure))
    yield page
    await opened.close()
    assert errors == []


def _is_defect(message: ConsoleMessage) -> bool:
    """Tell whether the browser's log blames the page: its policy, its markup or its code, not a response."""
    return message.type == "error" and not message.text.startswith("Failed to load resource")
