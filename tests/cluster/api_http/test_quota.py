"""A ResourceQuota of the namespace: what exceeds it is refused with a reason, and nothing is left behind."""

import asyncio

import pytest

from crds.kinds import DEPLOYMENT, PROJECT, RUN
from tests.cluster.quotas import QUOTA

SOURCE = {"git": {"url": "https://git.example/x.git", "commit": "a" * 40}}


@pytest.fixture
async def quota(testbed):
    """A quota of one Run and two Projects, once the cluster counts them."""
    hard = {"count/runs.crewyard.dev": "1", "count/projects.crewyard.dev": "2"}
    await testbed.kube.create(QUOTA, {"metadata": {"name": "few"}, "spec": {"hard": hard}})
    while (await testbed.kube.get(QUOTA, "few")).get("status", {}).get("used", {}).keys() != hard.keys():
        await asyncio.sleep(0.1)


async def deployed(testbed, project):
    """A project with an active deployment; return its name."""
    await testbed.data("POST", "/v1/projects", {"name": project})
    name = f"dep-{project}"
    await testbed.kube.create(
        DEPLOYMENT, {"metadata": {"name": name}, "spec": {"project": project, "source": SOURCE}}
    )
    await testbed.mark_built(project, name)
    return project


async def test_runs_beyond_the_quota_are_refused_and_leave_no_row(testbed, quota):
    project = await deployed(testbed, "crew")
    first = await testbed.data("POST", "/v1/runs", {"deployment": project})
    status, found, headers = await testbed.call("POST", "/v1/runs", {"deployment": project})
    assert (status, found["error"]["code"], headers["Retry-After"]) == (429, "rate_limited", "60")
    assert "ResourceQuota" in found["error"]["message"]
    assert [run["id"] for run in await testbed.data("GET", "/v1/runs")] == [first["id"]]
    assert len((await testbed.kube.list(RUN)).items) == 1


async def test_projects_beyond_the_quota_are_refused_and_others_stay(testbed, quota):
    await deployed(testbed, "crew")
    await testbed.data("POST", "/v1/projects", {"name": "second"})
    async with asyncio.timeout(180):
        # While CRDs change, the quota controller counts again, and for a moment too few.
        while (await testbed.call("POST", "/v1/projects", {"name": "third"}))[0] != 429:
            assert (await testbed.call("DELETE", "/v1/projects/third"))[0] in (202, 204)
            while await testbed.kube.get(PROJECT, "third"):
                await asyncio.sleep(0.1)
    assert len((await testbed.kube.list(PROJECT)).items) == 2
    assert (await testbed.data("PATCH", "/v1/projects/crew", {"run": {"timeout": "5m"}}))["name"] == "crew"
