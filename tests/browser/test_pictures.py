"""The pictures of the console in the documentation; `make pictures` keeps them."""

import os
from pathlib import Path

import pytest
from playwright.async_api import expect

from tests.browser import story
from tests.unit.api.v1.test_usage import account_all


@pytest.fixture
def pictures(tmp_path) -> Path:
    """The directory of the pictures."""
    return Path(os.environ.get("CREWYARD_PICTURES", tmp_path))


async def save(page, path: Path) -> None:
    """Save the page as it is, and check that it is a picture of some size."""
    await page.screenshot(path=path, animations="disabled")
    assert path.stat().st_size > 10_000


async def test_run(testbed, console, pictures):
    await story.add_project(testbed)
    await story.add_run(testbed)
    page = await console.show(f"#/runs/{story.RUN_ID}")
    await expect(page.get_by_role("listbox", name="Events")).to_contain_text("completed after")
    await page.get_by_role("treeitem", name="tool search").click()
    await save(page, pictures / "console-run.png")


async def test_project(testbed, console, pictures):
    await story.add_history(testbed)
    await story.add_run(testbed)
    await account_all(testbed)
    page = await console.show(f"#/projects/{story.PROJECT}")
    await expect(page.get_by_role("heading", name="Limits")).to_be_visible()
    await save(page, pictures / "console-project.png")


async def test_compare(testbed, console, pictures):
    await story.add_project(testbed)
    await story.add_run(testbed)
    await story.add_run(testbed, "run-other")
    page = await console.show(f"#/runs/{story.RUN_ID}/compare")
    await expect(page.get_by_role("heading", name="Output")).to_be_visible()
    await save(page, pictures / "console-compare.png")
