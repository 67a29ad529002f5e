"""A project of a team's namespace in a browser: created, shown and run, over an apiserver stub."""

import dataclasses

import pytest
import pytest_asyncio
from aiohttp import web
from playwright.async_api import expect

from api.services import SERVICES
from crds import objects
from tests.testbed.apiserver import serving

TEAM = "team-harbour"
OBJECTS = f"/apis/crewyard.dev/v1alpha1/namespaces/{TEAM}/{{kind}}"


@pytest.fixture
def settings():
    return {"CREWYARD_NAMESPACES": TEAM}


@pytest_asyncio.fixture(loop_scope="session")
async def created(testbed, monkeypatch):
    """Return the objects that the API creates in the team's namespace, by kind and name."""
    kept = {}

    async def create(request):
        raw = await request.json()
        number = str(1000 + len(kept))
        raw["metadata"] |= {"namespace": TEAM, "uid": f"uid-{number}", "resourceVersion": number}
        raw["metadata"]["creationTimestamp"] = "2026-11-21T10:00:00Z"
        kept[request.match_info["kind"], raw["metadata"]["name"]] = raw
        return web.json_response(raw, status=201)

    async with serving([web.post(OBJECTS, create)]) as kube:
        app = testbed.client.server.app
        monkeypatch.setitem(app._state, SERVICES, dataclasses.replace(app[SERVICES], kube=kube))
        yield kept


async def activate(testbed, project, name):
    """Project a built deployment of the namespace, and the project whose active one it is."""
    built = {"type": "Built", "status": "True", "reason": "Built", "message": ""}
    plan = {"framework": "python", "entrypoint": "main:kickoff", "python": "3.11"}
    status = {"phase": "Active", "image": "r/x@sha256:0", "plan": plan, "conditions": [built]}
    spec = {"project": project["metadata"]["name"], "source": {"archive": {"upload": "upl_1"}}}
    metadata = {**project["metadata"], "name": name, "uid": f"uid-{name}", "resourceVersion": "2000"}
    await testbed.store.deployments.observe(
        objects.Deployment({"metadata": metadata, "spec": spec, "status": status})
    )
    changed = {**project, "metadata": {**project["metadata"], "resourceVersion": "2001"}}
    await testbed.store.projects.observe(objects.Project({**changed, "status": {"activeDeployment": name}}))


async def test_project_of_a_team_is_created_shown_and_run(testbed, created, console):
    page = await console.show("#/projects")
    await page.get_by_label("Name").fill("tides")
    await page.get_by_label("Team").fill(TEAM)
    await page.get_by_role("button", name="Create project").click()
    await expect(page.get_by_role("heading", name="tides")).to_be_visible()
    await expect(page.locator("dl.facts").first).to_contain_text(f"Namespace{TEAM}")
    await activate(testbed, created["projects", "tides"], "dep-a")
    await console.show("#/projects")
    await expect(page.get_by_role("row").filter(has_text="tides")).to_contain_text(TEAM)
    await console.show("#/projects/tides/runs?new=yes")
    await page.get_by_role("button", name="Start run").click()
    await expect(page.get_by_role("heading", name="run_")).to_be_visible()
    [run] = [raw for (kind, _), raw in created.items() if kind == "runs"]
    assert run["spec"]["project"] == "tides"


async def test_namespace_that_is_not_served_is_named_at_the_form(created, console):
    page = await console.show("#/projects")
    await page.get_by_label("Name").fill("tides")
    await page.get_by_label("Team").fill("kube-system")
    await page.get_by_role("button", name="Create project").click()
    await expect(page.get_by_role("alert")).to_contain_text(
        "ask the operator to add it to CREWYARD_NAMESPACES"
    )
    assert created == {}


async def test_project_of_the_installation_shows_no_namespace(testbed, console):
    await testbed.add_project("tides")
    page = await console.show("#/projects")
    await expect(page.get_by_role("link", name="tides")).to_be_visible()
    await expect(page.get_by_role("columnheader", name="Namespace")).to_have_count(0)
    await console.show("#/projects/tides")
    await expect(page.locator("dl.facts").first).to_contain_text("Source")
    await expect(page.locator("dl.facts").first).not_to_contain_text("Namespace")
