"""The way from an empty installation to a first result: what each page says comes next, in a browser.

tests/e2e/console/test_first_visit.py goes it with a cluster behind the API.
"""

from playwright.async_api import expect

from crds import names
from tests.browser import story
from tests.browser.test_accessibility import violations


async def expect_step(page, text):
    step = page.get_by_role("list", name="Steps to the first result").locator("[aria-current=step]")
    await expect(step).to_have_text(text)


async def test_each_step_says_what_comes_next(testbed, console):
    """Slow: each step is checked for accessibility."""
    page = await console.show("#/projects")
    await expect_step(page, "1. Create a project")
    assert await violations(page) == []
    await page.get_by_label("Name").fill(story.PROJECT)
    await page.get_by_label("Git repository").fill(story.SPEC["source"]["git"]["url"])
    async with page.expect_request(lambda request: request.method == "POST") as request:
        await page.get_by_role("button", name="Create project").click()
    made = (await request.value).post_data_json
    assert made == {"name": story.PROJECT, **story.SPEC}

    # The local API has no cluster behind it: what the controller would do, the test adds.
    await testbed.add_project(story.PROJECT, story.SPEC)
    await console.show(f"#/projects/{story.PROJECT}")
    await expect_step(page, "2. Wait for its first deployment")
    await expect(page.get_by_text("The service reads the repository now.")).to_be_visible()
    assert await violations(page) == []
    raw = await testbed.add_deployment(story.DEPLOYMENT, story.PROJECT, "Building")
    await expect(page.get_by_role("heading", name="The first deployment is on its way")).to_be_visible()
    await testbed.change_deployment(raw, phase="Active", image="r/x@sha256:0")
    await testbed.change_project(story.PROJECT, activeDeployment=story.DEPLOYMENT)
    await expect(page.get_by_role("heading", name="Start the first run")).to_be_visible()
    await expect_step(page, "3. Start a run")
    assert await violations(page) == []
    await expect(page.get_by_role("button", name="Start run")).to_be_visible()

    # The smoke run of the deployment does not count as the first run.
    await testbed.add_run(names.smoke_run(raw["metadata"]["uid"]), story.PROJECT, story.DEPLOYMENT)
    await console.show(f"#/projects/{story.PROJECT}")
    await expect_step(page, "3. Start a run")

    run = await testbed.add_run(story.RUN, story.PROJECT, story.DEPLOYMENT)
    await console.show(f"#/runs/{story.RUN_ID}")
    panel = page.get_by_role("complementary", name="Details")
    await expect(panel).to_contain_text("The output appears here")
    await testbed.claim_run(run)
    result = {"outcome": "succeeded", "durationMs": 1, "output": '"Fundy"'}
    await testbed.finish_run(run, "Succeeded", durationMs=1, result=result)
    await expect(panel).to_contain_text("OutputCopyFundy")
    await console.show(f"#/projects/{story.PROJECT}")
    await expect(page.get_by_role("list", name="Steps to the first result")).to_have_count(0)


async def test_form_of_a_project_refuses_an_invalid_name(console):
    page = await console.show("#/projects")
    name = page.get_by_label("Name")
    for text, valid in (("Tides", False), ("tides-", False), ("-tides", False), ("tides-2", True)):
        await name.fill(text)
        assert await name.evaluate("(field) => field.checkValidity()") == valid, text
    assert "Lower-case" in await name.get_attribute("title")
