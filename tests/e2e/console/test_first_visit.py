"""From a git repository to a result by the buttons of the console alone, against the installed service."""

import pytest
from playwright.async_api import expect

from tests.e2e.console.test_console import browser, page, sign_in

__all__ = ["browser", "page"]
pytestmark = pytest.mark.nightly
CREW = {
    "main.py": """
import time

def kickoff(inputs):
    if inputs["topic"] == "smoke":
        # Longer than the console takes to show that the deployment is on its way.
        time.sleep(20)
    return f"{inputs['topic']}, {inputs['pages']} pages"
""",
    "crew.toml": '[run.inputs]\ntopic = "string"\npages = {type = "integer", default = 3}\n'
    '[deployment]\nentrypoint = "main:kickoff"\nsmoke = {input = {topic = "smoke", pages = 1}}\n',
}


async def test_from_a_repository_to_a_result_by_buttons(git_project, page):
    """Slow: a build, its smoke run, and a run."""
    git_project.repository.commit(CREW, "A first crew")
    await sign_in(page, "#/projects")
    await page.get_by_label("Name").fill(git_project.project)
    await page.get_by_label("Git repository").fill(git_project.url)
    await page.get_by_role("button", name="Create project").click()
    await page.get_by_role("link", name="Follow its build.").click()
    stages = page.get_by_role("list", name="Stages")
    await expect(stages.get_by_role("listitem")).to_contain_text(
        ["Found", "Waiting", "Fetch", "Plan", "Assemble", "Smoke run", "Active"]
    )
    # The page was open while the deployment was on its way: it opens the form of the first run.
    await page.get_by_label("topic").fill("tides")
    await expect(page.get_by_label("pages")).to_have_value("3")
    await expect(stages.locator(".done").filter(has_text="Active")).to_be_visible()
    await page.get_by_role("button", name="Start run").click()
    panel = page.get_by_role("complementary", name="Details")
    await expect(panel).to_contain_text("tides, 3 pages")
