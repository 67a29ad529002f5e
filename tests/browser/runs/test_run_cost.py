"""Tokens by model and their cost on the page of a run, in a browser."""

import json

import pytest
import pytest_asyncio
from playwright.async_api import expect

from tests.browser import story
from tests.browser.test_accessibility import violations
from tests.unit.api.v1.test_usage import account_all

PRICES = {
    "currency": "USD",
    "per_run_hour": 3.6,
    "per_million_prompt_tokens": 2,
    "per_million_completion_tokens": 6,
}


@pytest.fixture
def settings(request):
    more = request.param if isinstance(request.param, dict) else {}
    return {"CREWYARD_PRICES": json.dumps(PRICES | more)} if request.param else {}


@pytest_asyncio.fixture(loop_scope="session")
async def section(testbed, console):
    """The section of tokens and cost on the page of a run."""
    await story.add_project(testbed)
    await story.add_run(testbed)
    page = await console.show(f"#/runs/{story.RUN_ID}")
    return page.get_by_role("region", name="Tokens and cost")


@pytest.mark.parametrize("settings", [True], indirect=True)
async def test_cost_by_model_and_of_the_run(section):
    await expect(section.get_by_role("row")).to_have_text(
        [
            "ModelCallsInOutCost",
            "mistral-small34,9266460.0137 USD",
            "mistral-large13,1209050.0117 USD",
            "all48,0461,5510.0254 USD",
        ]
    )
    # 16.2 s are 0.0162 USD.
    await expect(section).to_contain_text("The run cost 0.0416 USD")
    assert await violations(section.page) == []


@pytest.mark.parametrize("settings", [False], indirect=True)
async def test_without_prices_there_is_no_cost(section):
    await expect(section.get_by_role("row")).to_have_count(4)
    await expect(section).not_to_contain_text("USD")


@pytest.mark.parametrize("settings", [{"per_artifact_gib": 1_000_000}], indirect=True)
async def test_accounted_run_costs_what_api_and_traces_say(testbed, console):
    await story.add_project(testbed)
    await story.add_run(testbed)
    page = await console.show(f"#/runs/{story.RUN_ID}")
    section = page.get_by_role("region", name="Tokens and cost")
    await expect(section).to_contain_text("0.0416 USD, with its time, without its build; its artifacts")
    await account_all(testbed)
    cost = (await testbed.get(f"/v1/runs/{story.RUN_ID}"))["data"]["usage"]["cost"]
    assert cost > 0.05
    await page.reload()
    await expect(section).to_contain_text(", with its time and artifacts, without its build.")
    shown = (await section.text_content()).split("The run cost ")[1].split(" USD")[0]
    assert float(shown.replace(",", "")) == pytest.approx(cost, abs=0.005)


@pytest.mark.parametrize("settings", [True], indirect=True)
async def test_pages_format_a_cost_alike(testbed, console):
    await story.add_project(testbed)
    await story.add_run(testbed)
    await account_all(testbed)
    page = await console.show(f"#/projects/{story.PROJECT}")
    await expect(page.locator(".card").filter(has_text="Tokens in 30 days")).to_contain_text("0.0416 USD")
    await expect(page.get_by_role("figure").filter(has_text="Cost by day")).to_contain_text("0.0416 USD")
    await console.show(f"#/projects/{story.PROJECT}/usage")
    await expect(page.get_by_role("definition").filter(has_text="0.0416 USD")).to_be_visible()
    await console.show("#/installation/usage?from=2026-11-21&to=2026-11-21")
    await expect(page.get_by_role("cell", name="0.0416 USD")).to_be_visible()
