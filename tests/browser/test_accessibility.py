"""Pages of the console against the rules of WCAG 2.2 A and AA, light and dark, and on a phone."""

import pytest_asyncio
from axe_playwright_python.async_playwright import Axe

from tests.browser import story

RULES = {"runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]}
COLORS = {"runOnly": {"type": "rule", "values": ["color-contrast", "link-in-text-block"]}}
"""The rules about colors: the dark scheme differs from the light one by nothing else."""
PAGES = (
    "#/projects",
    "#/projects/tides",
    "#/projects/tides/deployments",
    "#/projects/tides/runs",
    "#/projects/tides/schedules",
    "#/projects/tides/notifications",
    "#/projects/tides/usage",
    "#/deployments/dep_second",
    "#/runs",
    "#/runs/run_tides",
    "#/runs/run_tides/compare",
    "#/installation",
    "#/installation/usage",
    "#/installation/api-keys",
    "#/installation/audit",
)
OVERFLOWS = "() => document.documentElement.scrollWidth > document.documentElement.clientWidth"


async def violations(page, rules=RULES) -> list[str]:
    """Return the rules that the page breaks, with the elements."""
    found = (await Axe().run(page, options=rules)).response["violations"]
    return [f"{rule['id']}: {node['html'][:200]}" for rule in found for node in rule["nodes"]]


@pytest_asyncio.fixture(loop_scope="session")
async def tides(testbed, console):
    """The console with a project, its history and a run."""
    await story.add_history(testbed)
    await story.add_run(testbed)
    await story.add_receiver(testbed)
    return console


async def test_pages_break_no_rule(testbed, tides):
    """Slow: shows each page twice and checks it by axe."""
    broken = {}
    for address in PAGES:
        page = await tides.show(address)
        testbed.reset_rate_limits()
        for scheme, rules in (("light", RULES), ("dark", COLORS)):
            await page.emulate_media(color_scheme=scheme)
            if found := await violations(page, rules):
                broken[f"{address} {scheme}"] = found
    assert broken == {}


async def test_dialogs_and_sign_in_break_no_rule(tides):
    page = await tides.show("#/deployments/dep_second")
    await page.get_by_role("button", name="Roll back…").click()
    assert await violations(page) == []
    await page.keyboard.press("Escape")
    await page.keyboard.press("Control+k")
    assert await violations(page) == []
    await page.keyboard.press("Escape")
    await page.get_by_role("button", name="Sign out").click()
    assert await violations(page) == []


async def test_pages_fit_a_phone(testbed, tides):
    """Slow: shows each page."""
    page = tides.page
    await page.set_viewport_size({"width": 360, "height": 700})
    wide = []
    for address in PAGES:
        await tides.show(address)
        testbed.reset_rate_limits()
        if await page.evaluate(OVERFLOWS):
            wide.append(address)
    assert wide == []
