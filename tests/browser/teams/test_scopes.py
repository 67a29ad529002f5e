"""What the pages offer to callers with fewer scopes, and the deletion of a project."""

import dataclasses

import pytest
from aiohttp import web
from playwright.async_api import expect

from api.services import SERVICES
from tests.browser import story
from tests.testbed.apiserver import serving

PROJECT_PATH = f"/apis/crewyard.dev/v1alpha1/namespaces/crews/projects/{story.PROJECT}"
OFFERS = (
    ("", "a", "New run", "run"),
    ("", "button", "Delete…", "admin"),
    ("/deployments", "button", "Set packages", "deploy"),
    ("/runs", "summary", "New run", "run"),
    ("/schedules", "button", "Set schedule", "run"),
)
"""Tab of a project, element and text of what it offers, and the scope that this needs."""


@pytest.mark.parametrize("scopes", [["read"], ["read", "run"], ["read", "deploy"], ["admin"]], ids="+".join)
async def test_a_page_offers_what_the_scopes_allow(testbed, console, scopes):
    await story.add_project(testbed)
    await story.add_run(testbed)
    page = console.page
    await page.get_by_role("button", name="Sign out").click()
    console.key = testbed.create_key(*scopes)
    await console.sign_in()
    for tab, element, text, scope in OFFERS:
        await console.show(f"#/projects/{story.PROJECT}{tab}")
        await expect(page.get_by_role("heading", name=story.PROJECT)).to_be_visible()
        allowed = scope in scopes or "admin" in scopes
        await expect(page.locator(element).filter(has_text=text)).to_have_count(1 if allowed else 0)
    await console.show(f"#/runs/{story.RUN_ID}")
    may_run, may_erase = not {"run", "admin"}.isdisjoint(scopes), not {"deploy", "admin"}.isdisjoint(scopes)
    await expect(page.locator("summary").filter(has_text="Run again")).to_have_count(1 if may_run else 0)
    await expect(page.get_by_role("button", name="Erase…")).to_have_count(1 if may_erase else 0)


async def test_a_project_is_deleted_after_its_name_is_entered(testbed, console, monkeypatch):
    await story.add_project(testbed)
    deleted = []

    async def delete(request):
        deleted.append(request.path)
        return web.json_response({})

    async with serving([web.delete(PROJECT_PATH, delete)]) as kube:
        app = testbed.client.server.app
        monkeypatch.setitem(app._state, SERVICES, dataclasses.replace(app[SERVICES], kube=kube))
        page = await console.show(f"#/projects/{story.PROJECT}")
        await page.get_by_role("button", name="Delete…").click()
        dialog = page.get_by_role("dialog", name=f"Erase {story.PROJECT}?")
        await expect(dialog.get_by_role("button", name="Erase")).to_be_disabled()
        await dialog.get_by_role("textbox").fill(story.PROJECT)
        await dialog.get_by_role("button", name="Erase").click()
        await expect(page.get_by_role("heading", name="Projects")).to_be_visible()
        await expect(page.get_by_role("link", name=story.PROJECT)).to_have_count(0)
    assert deleted == [PROJECT_PATH]
