"""The documentation site: built strictly, and looked at in a real browser, from a server and from a file."""

import functools
import http.server
import os
import subprocess
import sys
import threading

import pytest
import pytest_asyncio
from playwright.async_api import expect

from tests.testbed.chromium import chromium
from tests.testbed.documentation import ROOT

SECONDS = 120_000
LOOKED_AT = ("index", "start", "concepts", "project", "calls", "commands", "troubleshooting", "architecture")


class QuietFileHandler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        """No one asks."""


@pytest.fixture(scope="session")
def site(tmp_path_factory):
    directory = tmp_path_factory.mktemp("site")
    built = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(directory)],
        cwd=ROOT, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"}, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert built.returncode == 0, built.stderr
    return directory


@pytest.fixture(scope="session")
def served(site):
    server = http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), functools.partial(QuietFileHandler, directory=str(site))
    )
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def browser():
    async with chromium(SECONDS) as opened:
        yield opened


@pytest_asyncio.fixture(loop_scope="session")
async def page(browser):
    """A page that fails the test on errors and notes what it asks for."""
    found = await browser.new_page(viewport={"width": 390, "height": 800})
    found.set_default_timeout(SECONDS)
    wrong, asked = [], []
    found.on("pageerror", lambda error: wrong.append(str(error)))
    found.on("request", lambda request: asked.append(request.url))
    found.asked = asked
    yield found
    await found.close()
    assert wrong == []


async def test_pages_load_without_third_party_requests(page, served):
    """Slow: shows every chosen page in a browser."""
    for name in LOOKED_AT:
        await page.goto(f"{served}/{name}.html")
        await expect(page.locator("h1").first).to_be_visible(timeout=SECONDS)
        wide = await page.evaluate("() => document.documentElement.scrollWidth - innerWidth")
        assert wide <= 0, f"{name} is wider than a phone"
    assert [url for url in page.asked if not url.startswith((served, "data:", "blob:"))] == []


async def test_picture_follows_the_color_scheme(page, served):
    await page.goto(f"{served}/concepts.html")
    colour = "() => getComputedStyle(document.querySelector('.picture text')).fill"
    light = await page.evaluate(colour)
    await page.locator("label[for=__palette_1]").first.click()
    await expect(page.locator("body")).to_have_attribute("data-md-color-scheme", "slate", timeout=SECONDS)
    assert await page.evaluate(colour) != light


@pytest.mark.parametrize("way", ["server", "file"])
async def test_search_finds_a_reason(page, served, site, way):
    await page.set_viewport_size({"width": 1200, "height": 800})
    await page.goto(f"{served}/index.html" if way == "server" else (site / "index.html").as_uri())
    await page.locator("input.md-search__input").click()
    await page.locator("input.md-search__input").press_sequentially("Superseded")
    result = page.locator(".md-search-result__link[href*='troubleshooting']").first
    await expect(result).to_be_attached(timeout=SECONDS)
    places = (served, "data:", "blob:") if way == "server" else ("file:", "data:", "blob:", "about:")
    assert [url for url in page.asked if not url.startswith(places)] == []


async def test_reason_has_a_url(page, served):
    await page.goto(f"{served}/troubleshooting.html#crewerror")
    await expect(page.locator("#crewerror")).to_be_in_viewport(timeout=SECONDS)
