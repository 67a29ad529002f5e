"""The page of a project in a browser: its state at a glance, its first steps, rollback with a question."""

import re

import pytest
from playwright.async_api import expect

from crds import names
from tests.browser import story
from tests.unit.api.v1.test_usage import account_all


def card(page, title):
    return page.locator(".card").filter(has_text=title)


async def test_overview_shows_the_state(testbed, console):
    await story.add_history(testbed)
    page = await console.show(f"#/projects/{story.PROJECT}")
    await expect(card(page, "Active deployment")).to_contain_text("Name the sources")
    await expect(card(page, "Active deployment")).to_contain_text("4f1d2c7ab09e")
    await expect(card(page, "Success")).to_contain_text("83.3 %")
    await expect(card(page, "Median duration")).to_contain_text("9.0 s")
    await expect(card(page, "Median duration")).to_contain_text("95 % within 15.0 s")
    strip = page.get_by_role("group", name="Durations of the last runs").get_by_role("link")
    await expect(strip).to_have_count(12)
    await expect(page.get_by_role("img", name="Tokens by day")).to_be_visible()
    await expect(page.get_by_role("row").filter(has_text="Concurrent runs")).to_contain_text("0 of")
    await strip.nth(3).click()
    await expect(page.get_by_role("heading", name="run_past03")).to_be_visible()


async def test_overview_counts_all_waiting_runs(testbed, console):
    await story.add_project(testbed)
    for number in range(101):
        await testbed.add_run(f"run-queued{number:03}", story.PROJECT, story.DEPLOYMENT)
    page = await console.show(f"#/projects/{story.PROJECT}")
    await expect(card(page, "Now")).to_contain_text("0 running")
    await expect(card(page, "Now")).to_contain_text("101 waiting")


async def test_tokens_of_runs_are_in_the_chart(testbed, console):
    await story.add_project(testbed)
    await story.add_run(testbed)
    await account_all(testbed)
    page = await console.show(f"#/projects/{story.PROJECT}")
    chart = page.get_by_role("img", name="Tokens by day. 2026-11-21: 8,046 in, 1,551 out")
    await expect(chart).to_be_visible()


async def test_budgets_are_shown_with_what_is_used(testbed, console):
    limits = {"run": {"tokens": 20000, "cost": 2.5}, "month": {"tokens": 9597}}
    spec = {**story.SPEC, "budget": limits}
    await testbed.add_project(story.PROJECT, spec, activeDeployment=story.DEPLOYMENT)
    await testbed.add_deployment(story.DEPLOYMENT, story.PROJECT)
    page = await console.show(f"#/projects/{story.PROJECT}/usage")
    await expect(page.get_by_role("row").filter(has_text="Tokens")).to_contain_text("0 of 9,597")
    await expect(
        page.get_by_text("20,000 tokens, a cost of 2.5 (no prices). A run above it is stopped.")
    ).to_be_visible()
    await story.add_run(testbed)
    await account_all(testbed)
    page = await console.show(f"#/projects/{story.PROJECT}")
    await expect(page.get_by_role("row").filter(has_text="9,597 of 9,597")).to_be_visible()
    await expect(page.get_by_role("alert")).to_contain_text("BudgetExceeded")
    await expect(page.get_by_role("alert")).to_contain_text("new runs are refused until 2026-12-01")


async def test_rollback_lists_what_it_undoes(testbed, console):
    await story.add_history(testbed)
    page = await console.show("#/deployments/dep_second")
    await page.get_by_role("button", name="Roll back…").click()
    dialog = page.get_by_role("dialog", name="Roll back to Add Severn?")
    await expect(dialog).to_contain_text("This undoes 2 deployments")
    await expect(dialog.get_by_role("listitem")).to_contain_text(["Name the sources", "Ask twice"])
    await dialog.get_by_role("button", name="Roll back").click()
    # Without a cluster behind the API nothing can change, and the page says so.
    await expect(dialog.get_by_role("alert")).to_be_visible()
    await dialog.get_by_role("button", name="Keep the active one").click()
    await expect(dialog).to_have_count(0)


async def test_erasing_asks_first(testbed, console):
    await story.add_history(testbed)
    page = await console.show("#/deployments/dep_second")
    await page.get_by_role("button", name="Erase…").click()
    dialog = page.get_by_role("dialog", name="Erase dep_second?")
    # A second press of Enter erases nothing.
    await expect(dialog.get_by_role("button", name="Keep it")).to_be_focused()
    await expect(dialog).to_contain_text("This cannot be undone.")
    await dialog.get_by_role("button", name="Keep it").click()
    await expect(dialog).to_have_count(0)
    await page.get_by_role("button", name="Erase…").click()
    await dialog.get_by_role("button", name="Erase").click()
    # Without a cluster behind the API nothing can change, and the page says so.
    await expect(dialog.get_by_role("alert")).to_be_visible()


async def test_stages_of_a_deployment(testbed, console):
    await story.add_project(testbed)
    await testbed.add_deployment("dep-new", story.PROJECT, "Building", {"message": "Next"})
    page = await console.show(f"#/projects/{story.PROJECT}")
    stages = page.get_by_role("list", name="Stages")
    await expect(stages.locator("[aria-current=step]")).to_contain_text("Build")
    page = await console.show(f"#/deployments/{story.DEPLOYMENT.replace('-', '_')}")
    await expect(page.get_by_role("list", name="Stages").locator(".done")).to_have_count(3)


BUILT = [
    {"name": "queued", "seconds": 2},
    {"name": "fetch", "seconds": 0.4},
    {"name": "plan", "seconds": 0.1},
]


@pytest.mark.parametrize(
    ("phase", "reason", "badge", "step"),
    [
        ("Building", None, "smoke run running", "now"),
        ("Active", None, "smoke run passed", "done"),
        ("Failed", "SmokeFailed", "smoke run failed", "failed"),
    ],
)
async def test_smoke_run_is_a_stage_and_a_badge(testbed, console, phase, reason, badge, step):
    await story.add_project(testbed)
    plan = {"smoke": {"input": {"topic": "tides"}}}
    error = {"error": {"reason": reason, "message": "no"}} if reason else {}
    raw = await testbed.add_deployment("dep-b", story.PROJECT, phase, plan=plan, stages=BUILT, **error)
    smoke = names.smoke_run(raw["metadata"]["uid"])
    await testbed.add_run(smoke, story.PROJECT, "dep-b")
    page = await console.show(f"#/projects/{story.PROJECT}/deployments")
    await expect(page.get_by_role("link", name=badge)).to_be_visible()
    await console.show("#/deployments/dep_b")
    await expect(page.get_by_role("list", name="Stages").locator(f".{step}")).to_contain_text(
        ["Found", "Waiting", "Fetch", "Plan", "Smoke run", "Active"] if step == "done" else ["Smoke run"]
    )
    await page.get_by_role("link", name=badge).click()
    await expect(page.get_by_role("heading", name=names.id_of(smoke))).to_be_visible()
    await console.show(f"#/projects/{story.PROJECT}/runs")
    await expect(page.get_by_role("row").filter(has_text=names.id_of(smoke))).to_contain_text("smoke")


async def test_failed_build_shows_its_stages_and_where_it_failed(testbed, console):
    await story.add_project(testbed)
    error = {"reason": "DependencyResolution", "message": "no such package"}
    await testbed.add_deployment("dep-b", story.PROJECT, "Failed", stages=BUILT, error=error)
    page = await console.show("#/deployments/dep_b")
    await expect(page.get_by_label("Build log")).to_have_text("No log.")
    page = await console.show(f"#/projects/{story.PROJECT}")
    stages = page.get_by_role("list", name="Stages").get_by_role("listitem")
    await expect(stages).to_have_text(
        [
            re.compile("Found"),
            "Waiting2.0 s",
            "Fetch400 ms",
            "Plan100 ms",
            "DependenciesDependencyResolution",
            "Active",
        ]
    )


async def test_page_of_a_deployment_follows_its_stages(testbed, console):
    await story.add_project(testbed)
    raw = await testbed.add_deployment("dep-b", story.PROJECT, "Building", stages=BUILT[:2])
    page = await console.show("#/deployments/dep_b")
    stages = page.get_by_role("list", name="Stages")
    await expect(stages.locator(".done")).to_have_count(3)
    await testbed.change_deployment(raw, stages=BUILT)
    await expect(stages.locator(".done")).to_have_count(4)


@pytest.mark.parametrize(
    ("state", "heading"),
    [
        ("empty", "Deploy a crew"),
        ("building", "The first deployment is on its way"),
        ("failed", "The first deployment failed"),
        ("active", "Start the first run"),
    ],
)
async def test_next_step_of_a_new_project(testbed, console, state, heading):
    active = {"activeDeployment": "dep-a"} if state == "active" else {}
    await testbed.add_project("new", {}, **active)
    if state != "empty":
        error = {"error": {"reason": "BuildFailed", "message": "no"}} if state == "failed" else {}
        await testbed.add_deployment("dep-a", "new", state.capitalize(), **error)
    page = await console.show("#/projects/new")
    await expect(page.get_by_role("heading", name=heading)).to_be_visible()


async def test_preview_is_marked_and_never_rolled_back_to(testbed, console):
    await story.add_history(testbed)
    spec = {"message": "Pull request 7", "preview": {"pullRequest": 7}}
    await testbed.add_deployment("dep-preview", story.PROJECT, "Superseded", spec)
    page = await console.show(f"#/projects/{story.PROJECT}/deployments")
    await expect(page.get_by_role("row").filter(has_text="Pull request 7")).to_contain_text("builtpreview")
    await page.get_by_role("link", name="dep_preview").click()
    await expect(page.get_by_text("New run")).to_be_visible()
    await console.show(f"#/projects/{story.PROJECT}")
    newest = page.locator("section").filter(has=page.get_by_role("heading", name="Newest deployment"))
    await expect(newest.get_by_role("paragraph").first).to_contain_text("builtpreview")
    await expect(newest).not_to_contain_text("superseded")
    await console.show("#/deployments/dep_preview")
    await expect(page.get_by_role("list", name="Stages").get_by_role("listitem").last).to_have_text("Ready")
    await expect(page.get_by_role("button", name="Roll back…")).to_have_count(0)
    await console.show("#/deployments/dep_second")
    await expect(page.get_by_role("button", name="Roll back…")).to_be_visible()


async def test_build_is_canceled_by_its_button(testbed, console):
    await story.add_project(testbed)
    await testbed.add_deployment("dep-b", story.PROJECT, "Building")
    page = await console.show("#/deployments/dep_b")
    async with page.expect_request(lambda request: request.method == "POST") as sent:
        await page.get_by_role("button", name="Cancel").click()
    assert (await sent.value).url.endswith("/v1/deployments/dep_b/cancel")
    # Without a cluster behind the API nothing can change, and the page says so.
    await expect(page.locator("#notification")).not_to_be_empty()
    await expect(page.get_by_role("button", name="Cancel")).to_be_enabled()


async def test_new_run_is_two_clicks_from_each_tab(testbed, console):
    await story.add_history(testbed)
    page = await console.show(f"#/projects/{story.PROJECT}/deployments")
    await page.get_by_role("link", name="New run").click()
    await expect(page.get_by_role("button", name="Start run")).to_be_visible()
    await expect(page.get_by_role("link", name="New run")).to_have_count(0)
    # The list of runs alone has the form closed.
    await page.get_by_role("link", name="Runs", exact=True).last.click()
    await expect(page.get_by_text("New run")).to_be_visible()
    await expect(page.get_by_role("button", name="Start run")).to_have_count(0)


async def test_time_of_a_row_is_its_title(testbed, console):
    await story.add_history(testbed)
    page = await console.show(f"#/projects/{story.PROJECT}/deployments")
    time = page.get_by_role("row").filter(has_text="dep_second").locator("time")
    made = await time.get_attribute("datetime")
    style = "{ dateStyle: 'medium', timeStyle: 'long' }"
    shown = await page.evaluate(f"(text) => new Date(text).toLocaleString([], {style})", made)
    assert await time.get_attribute("title") == shown
    # The zone is named.
    assert shown.endswith("UTC")


async def test_failed_newest_deployment_says_why_on_the_overview(testbed, console):
    await story.add_history(testbed)
    error = {"reason": "DependencyResolution", "message": "no such package"}
    await testbed.add_deployment("dep-bad", story.PROJECT, "Failed", error=error)
    page = await console.show(f"#/projects/{story.PROJECT}")
    await expect(page.get_by_role("alert")).to_contain_text("no such package")
