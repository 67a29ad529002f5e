"""Tokens and cost of runs side by side, in a browser: in the lists of runs, and of two compared runs."""

import json

import pytest
import pytest_asyncio
from playwright.async_api import expect

from tests.browser import story
from tests.browser.runs.test_run_cost import PRICES
from tests.browser.test_accessibility import violations
from tests.unit.api.v1.test_usage import account_all


@pytest.fixture
def settings(request):
    return {"CREWYARD_PRICES": json.dumps(PRICES)} if getattr(request, "param", True) else {}


@pytest_asyncio.fixture(loop_scope="session")
async def two_runs(testbed):
    """Two runs of the story; the second reported one model call more, after its last task."""
    await story.add_project(testbed)
    await story.add_run(testbed)
    raw = await story.add_run(testbed, "run-other", phase=None, offset=60)
    more = {"model": "mistral-large", "prompt_tokens": 1000, "completion_tokens": 500}
    await story.append(testbed, "run-other", [(15.9, "usage", more)], offset=60)
    result = {"outcome": "succeeded", "durationMs": 12_000, "output": "1"}
    await testbed.finish_run(raw, "Succeeded", durationMs=12_000, result=result)


def cells(page, run):
    return page.get_by_role("row").filter(has_text=run).get_by_role("cell")


async def test_lists_of_runs_show_tokens_and_cost(testbed, two_runs, console):
    page = await console.show("#/runs")
    # They appear once the service has counted them.
    await expect(cells(page, story.RUN_ID).nth(4)).to_have_text("–")
    await account_all(testbed)
    for address, before in (("#/runs", 4), (f"#/projects/{story.PROJECT}/runs", 3)):
        await console.show(address)
        await page.reload()
        for run, texts in ((story.RUN_ID, ["9,597", "0.0416 USD"]), ("run_other", ["11,097", "0.0424 USD"])):
            await expect(cells(page, run).nth(before)).to_have_text(texts[0])
            await expect(cells(page, run).nth(before + 1)).to_have_text(texts[1])
    assert await violations(page) == []


@pytest.mark.parametrize("settings", [False], indirect=True)
async def test_without_prices_lists_have_no_cost(testbed, two_runs, console):
    await account_all(testbed)
    page = await console.show("#/runs")
    await expect(cells(page, "run_other").nth(4)).to_have_text("11,097")
    await expect(page.get_by_role("columnheader")).to_have_text(
        ["Run", "Status", "Project", "Duration", "Tokens", "Created"]
    )


async def test_on_a_phone_the_list_shows_what_fits(testbed, two_runs, console):
    await account_all(testbed)
    page = await console.show("#/runs")
    await page.set_viewport_size({"width": 390, "height": 800})
    await expect(page.get_by_role("columnheader")).to_have_text(["Run", "Status", "Duration", "Created"])
    wider = "(area) => area.scrollWidth > area.clientWidth"
    assert not await page.locator("main .scroll").evaluate(wider)


async def test_compared_runs_show_tokens_and_cost_with_the_difference(testbed, two_runs, console):
    await account_all(testbed)
    page = await console.show(f"#/runs/{story.RUN_ID}/compare?with=run_other")
    rows = {
        "Duration": ["16.2 s", "12.0 s", "−4.2 s"],
        "Tokens in": ["8,046", "9,046", "+1,000"],
        "Tokens out": ["1,551", "2,051", "+500"],
        "Cost": ["0.0416 USD", "0.0424 USD", "+0.0008 USD"],
    }
    for title, texts in rows.items():
        row = page.get_by_role("row").filter(has=page.get_by_role("cell", name=title, exact=True))
        await expect(row.get_by_role("cell")).to_have_text([title, *texts])
    task = f"{story.WRITER}: {story.WRITE}"
    for step, text in ((task, "4.8 s4,025 tokens"), (f"{task} › mistral-large", "3.6 s4,025 tokens")):
        row = page.get_by_role("row").filter(has=page.get_by_role("cell", name=step, exact=True))
        await expect(row.get_by_role("cell")).to_have_text([step, text, text, "same"])
    row = page.get_by_role("row").filter(has=page.get_by_role("cell", name="Run", exact=True))
    await expect(row.get_by_role("cell").nth(3)).to_have_text("−4.2 s+1,500 tokens")
    assert await violations(page) == []
