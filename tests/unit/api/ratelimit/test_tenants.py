"""Requests of one tenant or anonymous client never use up those of another."""

import pytest

from api.store.volume import Volume
from crds.deployment_name import git_name

PROXY = "127.0.0.1"
pytestmark = pytest.mark.usefixtures("stopped_windows")


@pytest.fixture
def settings():
    return {
        "CREWYARD_TRUSTED_PROXIES": f"{PROXY}/32",
        "CREWYARD_LIMITS": (
            '{"project_keys": 2, "deployment_queue": 2, "uploads_bytes": 100, "project_bytes": 90}'
        ),
        "CREWYARD_PLANS": (
            '{"free": {"requests_per_minute": 4, "concurrent_runs": 2, "project_requests_per_minute": 6,'
            ' "deployments_per_minute": 3},'
            ' "pro": {"requests_per_minute": 5, "concurrent_runs": 10},'
            ' "trial": {"requests_per_minute": 90, "concurrent_runs": 1, "limits": {"queue": 1,'
            ' "deployment_queue": 1, "project_keys": 1, "run_max_seconds": 60,'
            ' "open_streams": 1}}}'
        ),
    }


async def statuses(testbed, count, path="/v1/projects", **more):
    return [(await testbed.call("GET", path, **more))[0] for _ in range(count)]


async def test_more_keys_are_not_more_requests(testbed):
    for name in ("alpha", "beta"):
        await testbed.add_project(name)
    first, second, other = (
        testbed.create_key("read", projects=[project], plan=None) for project in ("alpha", "alpha", "beta")
    )
    assert await statuses(testbed, 4, bearer=first) == [200] * 4
    # Within the limit of the key, beyond that of the project.
    assert await statuses(testbed, 3, bearer=second) == [200, 200, 429]
    status, body, headers = await testbed.call("GET", "/v1/projects", bearer=second)
    assert (status, headers["Retry-After"]) == (429, str(body["error"]["details"]["retry_after_seconds"]))
    assert "the keys of project alpha sent more than 6 requests per minute" in body["error"]["message"]
    assert (headers["X-RateLimit-Limit"], headers["X-RateLimit-Remaining"]) == ("6", "0")
    assert await statuses(testbed, 4, bearer=other) == [200] * 4


async def test_key_with_a_higher_limit_than_its_project_keeps_it(testbed):
    await testbed.add_project("alpha")
    bearer = testbed.create_key("read", projects=["alpha"], plan="enterprise")
    assert await statuses(testbed, 12, bearer=bearer) == [200] * 12


async def test_a_key_without_projects_counts_for_none(testbed):
    await testbed.add_project("alpha")
    assert await statuses(testbed, 12) == [200] * 12


async def test_clients_behind_a_proxy_have_separate_windows(testbed):
    def of(address):
        return {"bearer": "crw_wrong", "headers": {"X-Forwarded-For": f"8.8.8.8, {address}"}}

    assert await statuses(testbed, 61, **of("198.51.100.1")) == [401] * 60 + [429]
    assert await statuses(testbed, 1, **of("198.51.100.2")) == [401]


async def test_wrong_deliveries_do_not_delay_an_upload(testbed):
    await testbed.add_project("alpha")
    content = b"an archive"
    _, found, _ = await testbed.call("POST", "/v1/uploads", {"project": "alpha", "size": len(content)})
    path = found["data"]["upload_url"].removeprefix("http://crewyard.example")
    # As many as an address may send with wrong signatures.
    wrong = [await testbed.call("PUT", path + "x", data=b"", bearer="") for _ in range(601)]
    assert [status for status, _, _ in wrong] == [403] * 600 + [429]
    status, found, _ = await testbed.call("PUT", path, data=content, bearer="")
    assert status == 200, found


@pytest.mark.parametrize("plan", ["pro", "enterprise"])
async def test_a_bound_admin_cannot_raise_its_own_plan(testbed, plan):
    await testbed.add_project("alpha")
    bound = testbed.create_key("admin", projects=["alpha"], plan=None)
    body = {"name": "x", "scopes": ["read"], "projects": ["alpha"], "plan": plan}
    status, found, _ = await testbed.call("POST", "/v1/api-keys", body, bearer=bound)
    assert (status, found["error"]["details"]["field"]) == (403, "plan")
    status, found, _ = await testbed.call("PATCH", "/v1/projects/alpha", {"plan": plan}, bearer=bound)
    assert (status, found["error"]["details"]["field"]) == (403, "plan")
    body = {"name": "alpha", "plan": plan}
    status, found, _ = await testbed.call("POST", "/v1/projects", body, bearer=bound)
    assert (status, found["error"]["details"]["field"]) == (403, "plan")


async def test_a_bound_admin_gives_its_own_plan_and_less(testbed):
    await testbed.add_project("alpha", {"plan": "pro"})
    bound = testbed.create_key("admin", projects=["alpha"], plan=None)
    for plan in ("free", "pro"):
        body = {"name": "x", "scopes": ["read"], "projects": ["alpha"], "plan": plan}
        assert (await testbed.call("POST", "/v1/api-keys", body, bearer=bound))[0] == 201
    # The plan that the project has is no change. 503: this test has no kube-apiserver.
    assert (await testbed.call("PATCH", "/v1/projects/alpha", {"plan": "pro"}, bearer=testbed.admin))[
        0
    ] == 503
    testbed.reset_rate_limits()
    assert (await testbed.call("PATCH", "/v1/projects/alpha", {"plan": "pro"}, bearer=bound))[0] == 503


async def test_an_admin_of_all_projects_gives_any_plan(testbed):
    await testbed.add_project("alpha")
    body = {"name": "x", "scopes": ["read"], "projects": ["alpha"], "plan": "enterprise"}
    assert (await testbed.call("POST", "/v1/api-keys", body))[0] == 201


async def test_keys_are_counted_per_project(testbed):
    for name in ("alpha", "beta"):
        await testbed.add_project(name)
    bound = testbed.create_key("admin", projects=["alpha"])

    async def create(bearer, **body):
        whole = {"name": "CI", "scopes": ["read"], **body}
        return await testbed.call("POST", "/v1/api-keys", whole, bearer=bearer)

    made = [await create(bound, projects=["alpha"]) for _ in range(2)]
    assert [status for status, _, _ in made] == [201, 201]
    status, found, _ = await create(bound, projects=["alpha"])
    assert (status, found["error"]["details"]["field"]) == (409, "projects")
    assert "project_keys is 2" in found["error"]["message"]
    # Another project, and keys for all projects.
    assert (await create(testbed.admin, projects=["beta"]))[0] == 201
    assert (await create(testbed.admin))[0] == 201
    assert (await testbed.call("DELETE", f"/v1/api-keys/{made[0][1]['data']['id']}"))[0] == 204
    assert (await create(bound, projects=["alpha"]))[0] == 201


async def test_deployments_that_wait_are_counted_per_project(testbed):
    for name in ("alpha", "beta"):
        await testbed.add_project(name)
    for number in range(2):
        await testbed.add_deployment(f"dep-a{number}", "alpha", "Pending")

    async def deploy(project):
        body = {"project": project, "build_context_url": "https://elsewhere.example/x.zip"}
        return await testbed.call("POST", "/v1/deployments", body)

    status, found, headers = await deploy("alpha")
    assert (status, found["error"]["code"], headers["Retry-After"]) == (429, "queue_full", "30")
    assert found["error"]["details"] == {"project": "alpha", "limit": 2}
    # Past the queue, this address is refused.
    assert (await deploy("beta"))[0] == 400
    assert 'crewyard_limit_reached_total{limit="deployment_queue"} 1.0' in await metrics(testbed)


async def test_a_commit_that_is_deployed_already_counts_for_no_limit(testbed):
    git = {"url": "https://git.example/x.git"}
    uid = await testbed.add_project("alpha", {"plan": "free", "source": {"git": git}})
    spec = {"source": {"git": {**git, "commit": "a" * 40}}, "gitSha": "a" * 40}
    await testbed.add_deployment(git_name(uid, spec, 1), "alpha", "Superseded", spec)
    for number in range(2):
        await testbed.add_deployment(f"dep-a{number}", "alpha", "Pending")
    body = {"project": "alpha", "source": {"git": {"commit": "a" * 40}}}
    assert [(await testbed.call("POST", "/v1/deployments", body))[0] for _ in range(4)] == [201] * 4
    body["source"]["git"]["commit"] = "b" * 40
    status, found, _ = await testbed.call("POST", "/v1/deployments", body)
    assert (status, found["error"]["code"]) == (429, "queue_full")


async def test_deployments_a_minute_are_counted_per_project(testbed):
    for name in ("alpha", "beta"):
        await testbed.add_project(name, {"plan": "free"})

    async def deploy(project, bearer=None):
        # Within the limits, this address is refused.
        body = {"project": project, "build_context_url": "https://elsewhere.example/x.zip"}
        more = {} if bearer is None else {"bearer": bearer}
        return await testbed.call("POST", "/v1/deployments", body, **more)

    assert [(await deploy("alpha"))[0] for _ in range(3)] == [400] * 3
    # The limit is of the project, for all of its callers.
    for bearer in (None, testbed.create_key("deploy", projects=["alpha"])):
        status, found, headers = await deploy("alpha", bearer)
        assert (status, found["error"]["code"]) == (429, "rate_limited")
        assert "project alpha got more than 3 deployments per minute" in found["error"]["message"]
        assert 1 <= int(headers["Retry-After"]) <= 60
    assert (await deploy("beta"))[0] == 400
    assert 'crewyard_limit_reached_total{limit="deployments_per_minute"} 2.0' in await metrics(testbed)
    report = (await testbed.get("/v1/projects/alpha/usage"))["data"]
    used = {use["name"]: (use["used"], use["limit"]) for use in report["limits"]}
    assert used["deployments_per_minute"] == (3, 3)


@pytest.mark.parametrize("source", ["upload", "commit"])
async def test_a_refused_deployment_is_not_counted(testbed, source):
    await testbed.add_project("alpha", {"plan": "free"})
    _, found, _ = await testbed.call("POST", "/v1/uploads", {"project": "alpha", "size": 1})
    upload = {"build_context_url": found["data"]["build_context_url"]}
    body = {"project": "alpha"} | (
        upload if source == "upload" else {"source": {"git": {"commit": "0" * 40}}}
    )
    for _ in range(4):
        status, found, _ = await testbed.call("POST", "/v1/deployments", body)
        assert (status, found["error"]["code"]) in [(400, "invalid_request"), (409, "conflict")]
    report = (await testbed.get("/v1/projects/alpha/usage"))["data"]
    used = {use["name"]: use["used"] for use in report["limits"]}
    assert used["deployments_per_minute"] == 0


async def metrics(testbed):
    async with testbed.client.get("/metrics") as answer:
        return await answer.text()


async def test_uploads_have_a_limit_per_project_and_one_for_all(testbed):
    for name in ("alpha", "beta"):
        await testbed.add_project(name)

    async def announce(project, size):
        return await testbed.call("POST", "/v1/uploads", {"project": project, "size": size})

    status, found, _ = await announce("alpha", 91)
    assert (status, found["error"]["details"]["limit_bytes"]) == (429, 90)
    assert (await announce("alpha", 60))[0] == 201
    status, found, _ = await announce("beta", 60)
    assert (status, found["error"]["details"]["used_bytes"]) == (429, 60)
    assert "the limit uploads_bytes" in found["error"]["message"]
    assert 'crewyard_limit_reached_total{limit="uploads_bytes"} 1.0' in await metrics(testbed)
    assert (await announce("beta", 40))[0] == 201


async def test_below_the_floor_no_run_and_no_upload_is_accepted(testbed, tmp_path):
    await testbed.add_project("alpha", activeDeployment="dep-a")
    await testbed.add_deployment("dep-a", "alpha")
    testbed.store.volume = Volume(tmp_path, 10, free_bytes=lambda _: 5)
    body = {"project": "alpha", "size": 1}
    assert (await testbed.call("POST", "/v1/uploads", body))[0] == 503
    assert (await testbed.call("POST", "/v1/runs", {"deployment": "alpha"}))[0] == 503
    assert (await testbed.store.runs.page(0, 1)).total == 0
    assert (await testbed.call("GET", "/v1/projects/alpha"))[0] == 200


async def test_the_plan_of_a_project_lowers_its_limits(testbed):
    """Each request that one of them refuses is accepted for another project."""
    for name, plan in (("alpha", "trial"), ("beta", "free")):
        await testbed.add_project(name, {"plan": plan})
        await testbed.add_deployment(f"dep-{name}", name)
        await testbed.add_deployment(f"dep-{name}-2", name, "Pending")
        await testbed.add_run(f"run-{name}", name, f"dep-{name}")

    async def refusals(project):
        key = {"name": "CI", "scopes": ["read"], "projects": [project]}
        run = {"deployment": f"dep_{project}"}
        deployment = {"project": project, "build_context_url": "https://elsewhere.example/x.zip"}
        calls = [
            ("/v1/api-keys", key),
            ("/v1/api-keys", key),
            ("/v1/runs", {**run, "timeout": "2m"}),
            ("/v1/runs", run),
            ("/v1/deployments", deployment),
        ]
        found = [await testbed.call("POST", path, body) for path, body in calls]
        return [(status, body.get("error", {}).get("message", "")) for status, body, _ in found]

    made, key, timeout, queue, deployment = await refusals("alpha")
    assert made[0] == 201
    assert (key[0], "project_keys is 1" in key[1]) == (409, True)
    assert (timeout[0], "at most 1m" in timeout[1]) == (400, True)
    assert queue == (429, "1 runs of the project alpha are already queued; try again after some have started")
    assert (deployment[0], "already wait for their build" in deployment[1]) == (429, True)
    assert not {status for status, _ in await refusals("beta")} & {409, 429}

    report = (await testbed.get("/v1/projects/alpha/usage"))["data"]
    shown = {use["name"]: use["limit"] for use in report["limits"]}
    assert (shown["queue"], shown["deployment_queue"], shown["project_keys"]) == (1, 1, 1)


async def test_the_plan_of_a_project_lowers_its_open_streams(testbed):
    for name, plan in (("alpha", "trial"), ("beta", "enterprise")):
        await testbed.add_project(name, {"plan": plan})
        await testbed.claim_run(await testbed.add_run(f"run-{name}", name))

    async def second_stream(project):
        first, second = (testbed.create_key("read", projects=[project]) for _ in range(2))
        path, accept = f"/v1/runs/run_{project}/events", {"Accept": "text/event-stream"}
        async with testbed.client.get(path, headers={**accept, "Authorization": f"Bearer {first}"}) as opened:
            assert opened.status == 200
            headers = {**accept, "Authorization": f"Bearer {second}"}
            async with testbed.client.get(path, headers=headers) as answer:
                return answer.status, answer.status == 429 and (await answer.json())["error"]["details"]

    assert await second_stream("alpha") == (429, {"limit": 1})
    assert await second_stream("beta") == (200, False)


async def test_usage_shows_each_limit_and_what_is_used(testbed):
    await testbed.add_project("alpha", {"plan": "free"})
    await testbed.add_project("beta")
    await testbed.add_deployment("dep-a", "alpha", "Pending")
    await testbed.add_run("run-a", "alpha", "dep-a")
    bearer = testbed.create_key("read", projects=["alpha"], plan=None)
    await testbed.add_artifact("run-a", "a", b"x" * 70)
    body = {"name": "CI", "scopes": ["read"], "projects": ["alpha"]}
    assert (await testbed.call("POST", "/v1/api-keys", body))[0] == 201

    async def used(project, **more):
        report = (await testbed.get(f"/v1/projects/{project}/usage", **more))["data"]
        return {use["name"]: (use["used"], use["limit"]) for use in report["limits"]}

    assert await used("alpha", bearer=bearer) == {
        "concurrent_runs": (0, 2),
        "queue": (1, 1000),
        "deployment_queue": (1, 2),
        "deployments_per_minute": (0, 3),
        "project_requests_per_minute": (1, 6),
        "project_keys": (1, 2),
        "project_bytes": (70, 90),
        "kept_upload_bytes": (0, 5 << 30),
    }
    other = await used("beta")
    assert {count for count, _ in other.values()} == {0}
    status, text, _ = await testbed.call("GET", "/v1/projects/alpha/usage", headers={"Accept": "text/csv"})
    assert status == 200 and b"project_bytes" not in text
