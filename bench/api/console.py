"""C1: the console's longest pause while a hundred thousand events arrive, against one without.

The run has finished before Chromium opens it, so all events arrive together, which is the worst case. The
browser reports every task that blocks its page for 50 ms or more; a planted pause checks that it does.
"""

import os
import shutil
from typing import Any

from playwright.async_api import Browser, async_playwright

from bench.lib.finding import Finding
from bench.lib.installation import MeasuredInstallation

EVENT_COUNT = 100_000
PAIR_COUNT = 6
PAGE_TIMEOUT_MILLISECONDS = 120_000
PLANTED_MILLISECONDS = 150
PACE_PER_SECOND = 1_000_000_000
"""Lines a second; in effect as fast as they are printed."""
_PLANT_SCRIPT = """
(length) => setTimeout(() => { const end = performance.now() + length; while (performance.now() < end); }, 0)
"""
_TAKE_SCRIPT = "() => Math.max(50, ...window.pauses.splice(0))"
_REPORTED_SCRIPT = "(length) => window.pauses.some((pause) => pause >= length)"
_OBSERVER_SCRIPT = """
window.pauses = [];
new PerformanceObserver((list) => window.pauses.push(...list.getEntries().map((one) => one.duration)))
  .observe({ type: "longtask", buffered: true });
"""


async def measure(installation: MeasuredInstallation, count: int = EVENT_COUNT) -> list[Finding]:
    """Measure C1."""
    program = shutil.which("chromium")
    if program is None:
        raise FileNotFoundError("chromium is not on PATH; run `make tools` to install it")
    await installation.crew()
    runs = [await _finished_run(installation, event_count) for event_count in (0, count)]
    pairs = list[tuple[float, float]]()
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        for _ in range(PAIR_COUNT):
            without_events, with_events = [
                await _longest_pause(browser, run, event_count)
                for run, event_count in zip(runs, (0, count), strict=True)
            ]
            pairs.append((without_events, with_events))
        await browser.close()
    peer = "the same page of a run that printed nothing; below 0.05 s is reported as 0.05 s"
    return [Finding("C1", f"longest pause of the page, {count} events at once", pairs=pairs, peer=peer)]


async def _finished_run(installation: MeasuredInstallation, count: int) -> str:
    """Return a finished run that printed that many lines."""
    given = {"count": count, "pace": PACE_PER_SECOND}
    body = {"deployment": installation.deployment, "entrypoint": "main:lines", "input": given}
    run = (await installation.testbed.post("/v1/runs", body))["id"]
    ended = await installation.finished(run)
    if ended["status"] != "succeeded":
        raise RuntimeError(f"{run} is {ended['status']}: {ended.get('error')}")
    return str(run)


async def _longest_pause(browser: Browser, run: str, count: int) -> float:
    """Return the longest task, in seconds, from the page's start until all events are shown."""
    context = await browser.new_context(viewport={"width": 1200, "height": 850}, locale="en-GB")
    try:
        page: Any = await context.new_page()
        page.set_default_timeout(PAGE_TIMEOUT_MILLISECONDS)
        await page.goto(f"{os.environ['CREWYARD_URL']}/console/#/runs/{run}")
        await page.get_by_label("API key").fill(os.environ["CREWYARD_API_KEY"])
        await page.evaluate(_OBSERVER_SCRIPT)
        await page.get_by_role("button", name="Sign in").click()
        # The start and the end of the run, besides the lines.
        await page.wait_for_function(
            "(text) => document.querySelector('.filters [role=status]')?.textContent === text",
            arg=f"{count + 2:,} events",
        )
        await page.wait_for_timeout(500)
        longest = float(await page.evaluate(_TAKE_SCRIPT))
        await page.evaluate(_PLANT_SCRIPT, PLANTED_MILLISECONDS)
        # Raises if the browser does not report it: then it has not reported the others either.
        await page.wait_for_function(_REPORTED_SCRIPT, arg=PLANTED_MILLISECONDS)
        return longest / 1000
    finally:
        await context.close()
