"""One project at its limits, against a real apiserver; meanwhile another one works."""

import asyncio

import pytest

from crds.kinds import DEPLOYMENT, RUN

SOURCE = {"git": {"url": "https://git.example/x.git", "commit": "a" * 40}}


@pytest.fixture
def settings():
    return {
        "CREWYARD_LIMITS": '{"queue": 2, "deployment_queue": 2, "project_bytes": 100, "project_keys": 1}',
        "CREWYARD_PLANS": (
            '{"free": {"requests_per_minute": 50, "concurrent_runs": 2, "project_requests_per_minute": 60}}'
        ),
    }


@pytest.fixture
async def projects(testbed):
    """Two projects with an active deployment each, and a bound key of each."""
    keys = {}
    for project in ("greedy", "modest"):
        git = {"url": SOURCE["git"]["url"]}
        await testbed.data("POST", "/v1/projects", {"name": project, "source": {"git": git}})
        name = f"dep-{project}"
        await testbed.kube.create(
            DEPLOYMENT, {"metadata": {"name": name}, "spec": {"project": project, "source": SOURCE}}
        )
        await testbed.mark_built(project, name)
        body = {"name": "CI", "scopes": ["deploy", "run"], "projects": [project]}
        keys[project] = (await testbed.data("POST", "/v1/api-keys", body))["key"]
    return keys


def commit(number):
    return {"git": {"commit": f"{number:040x}"}}


@pytest.mark.usefixtures("stopped_windows")
async def test_one_project_at_each_limit_and_another_that_works(testbed, projects):
    async def call(project, method, path, body=None):
        headers = {"Authorization": f"Bearer {projects[project]}"}
        status, found, _ = await testbed.call(method, path, body, headers=headers)
        return status, found

    for _ in range(2):
        assert (await call("greedy", "POST", "/v1/runs", {"deployment": "greedy"}))[0] == 201
    status, found = await call("greedy", "POST", "/v1/runs", {"deployment": "greedy"})
    assert (status, found["error"]["code"]) == (429, "queue_full")
    for number in range(2):
        body = {"project": "greedy", "source": commit(number)}
        assert (await call("greedy", "POST", "/v1/deployments", body))[0] == 201
    status, found = await call(
        "greedy", "POST", "/v1/deployments", {"project": "greedy", "source": commit(9)}
    )
    assert (status, found["error"]["code"]) == (429, "queue_full")
    status, _ = await call("greedy", "POST", "/v1/uploads", {"project": "greedy", "size": 101})
    assert status == 429
    body = {"name": "x", "scopes": ["read"], "projects": ["greedy"]}
    assert (await testbed.call("POST", "/v1/api-keys", body))[0] == 409
    async with asyncio.timeout(300):
        while (await call("greedy", "GET", "/v1/projects/greedy"))[0] == 200:
            pass
    # The other has all of its own.
    report = (await call("modest", "GET", "/v1/projects/modest/usage"))[1]["data"]
    used = {use["name"]: use["used"] for use in report["limits"]}
    assert used == {**dict.fromkeys(used, 0), "project_requests_per_minute": 1, "project_keys": 1}
    made = [await call("modest", "POST", "/v1/runs", {"deployment": "modest"}) for _ in range(2)]
    assert [status for status, _ in made] == [201, 201]
    body = {"project": "modest", "source": commit(1)}
    assert (await call("modest", "POST", "/v1/deployments", body))[0] == 201
    assert (await call("modest", "POST", "/v1/uploads", {"project": "modest", "size": 99}))[0] == 201
    runs = [item["spec"]["project"] for item in (await testbed.kube.list(RUN)).items]
    assert sorted(runs) == ["greedy", "greedy", "modest", "modest"]
