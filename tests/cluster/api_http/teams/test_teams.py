"""Two namespaces behind one API server: each object in its own, one holder of a name, rights by namespace."""

import asyncio
import time

import pytest

from api.services import SERVICES
from crds import pod_tokens
from crds.kinds import DEPLOYMENT, PROJECT, RUN, SECRET
from crds.names import env_secret, name_of
from tests.cluster.api_http.auth.accounts import account, token
from tests.cluster.quotas import refuse_all

SOURCE = {"git": {"url": "https://git.example/x.git", "commit": "a" * 40}}
PLAN = {"framework": "python", "entrypoint": "main:kickoff", "python": "3.11"}
NEXT_SECOND = 1.1


@pytest.fixture
def settings(team):
    return {"CREWYARD_NAMESPACES": team.namespace}


async def until(check, pause=0.05):
    async with asyncio.timeout(180):
        while not (found := await check()):
            await asyncio.sleep(pause)
    return found


async def apply_deployment(kube, project, name):
    spec = {"project": project, "source": SOURCE}
    await kube.create(DEPLOYMENT, {"metadata": {"name": name}, "spec": spec})


async def deploy(testbed, kube, project):
    name = f"dep-{project}"
    await apply_deployment(kube, project, name)
    await testbed.mark_built(project, name, kube=kube, plan=PLAN)
    return name


async def test_all_of_a_teams_project_is_in_its_namespace(testbed, team):
    body = {"name": "theirs", "namespace": team.namespace, "source": {"git": {"url": SOURCE["git"]["url"]}}}
    created = await testbed.data("POST", "/v1/projects", body)
    assert created["namespace"] == team.namespace
    assert await team.get(PROJECT, "theirs") and await testbed.kube.get(PROJECT, "theirs") is None
    await testbed.data("PATCH", "/v1/projects/theirs", {"run": {"timeout": "10m"}})
    await testbed.data("PUT", "/v1/projects/theirs/env/MODEL_KEY", {"value": "secret"})
    assert "MODEL_KEY" in (await team.get(SECRET, env_secret("theirs")))["data"]
    assert await testbed.kube.get(SECRET, env_secret("theirs")) is None
    deployed = await testbed.data("POST", "/v1/deployments", {"project": "theirs", "source": commit(1)})
    name = name_of(deployed["id"])
    assert await team.get(DEPLOYMENT, name)
    await testbed.mark_built("theirs", name, kube=team, plan=PLAN)
    run = await testbed.data("POST", "/v1/runs", {"deployment": "theirs", "input": {"topic": "ants"}})
    run_name = name_of(run["id"])
    manifest = await team.get(RUN, run_name)
    assert manifest["spec"]["input"] == {"topic": "ants"}
    await claim(testbed, team, run_name, manifest["metadata"]["uid"])
    await testbed.data("POST", f"/v1/runs/{run['id']}/cancel")
    assert (await team.get(RUN, run_name))["spec"]["cancel"] is True
    assert (await testbed.call("DELETE", "/v1/projects/theirs"))[0] == 204
    assert await team.get(PROJECT, "theirs") is None
    assert (await testbed.kube.list(RUN)).items == []


def commit(number):
    return {"git": {"commit": f"{number:040x}"}}


async def claim(testbed, kube, run, uid):
    """Claim the run as its pod does; wait until the claim is in the object."""
    key = testbed.client.server.app[SERVICES].config.token_key
    wrong, right = (
        pod_tokens.mint(key, "run", namespace, run, uid, int(time.time()) + 600)
        for namespace in (testbed.kube.namespace, kube.namespace)
    )
    body = {"protocol": 1, "run_uid": uid, "pod_uid": "pod", "nonce": "nonce"}

    async def answer(text):
        headers = {"Authorization": f"Bearer {text}"}
        path = f"/internal/v1/runs/{run}/claim"
        async with testbed.client.post(path, json=body, headers=headers) as response:
            return response.status, await response.json()

    # No Run of that name is in the other namespace.
    assert (await answer(wrong))[0] == 404
    status, found = await answer(right)
    assert (status, found["state"], found["entrypoint"]) == (200, "granted", "main:kickoff")

    async def is_written():
        return (await kube.get(RUN, run))["status"].get("claim")

    assert (await until(is_written))["podUid"] == "pod"


async def test_a_name_exists_once_and_the_younger_project_is_not_shown(testbed, team):
    await testbed.data("POST", "/v1/projects", {"name": "demo"})
    status, found, _ = await testbed.call(
        "POST", "/v1/projects", {"name": "demo", "namespace": team.namespace}
    )
    assert (status, found["error"]["details"]["field"]) == (409, "name")
    assert await team.get(PROJECT, "demo") is None
    await deploy(testbed, testbed.kube, "demo")
    own = await testbed.data("GET", "/v1/projects/demo")
    await asyncio.sleep(NEXT_SECOND)
    await team.create(PROJECT, {"metadata": {"name": "demo"}, "spec": {"plan": "pro"}})
    await team.create(PROJECT, {"metadata": {"name": "marker"}, "spec": {}})
    await apply_deployment(team, "demo", "dep-hidden")
    await apply_deployment(team, "marker", "dep-marker")
    await team.create(RUN, {"metadata": {"name": "run-hidden"}, "spec": {"project": "demo"}})
    await team.create(RUN, {"metadata": {"name": "run-marker"}, "spec": {"project": "marker"}})

    # A watch per kind: none waits for the others.
    async def is_marker_shown():
        paths = ("/v1/runs/run_marker", "/v1/deployments/dep_marker", "/v1/projects/marker")
        return [(await testbed.call("GET", path))[0] for path in paths] == [200, 200, 200]

    await until(is_marker_shown)
    assert await testbed.data("GET", "/v1/projects/demo") == own
    names = [item["name"] for item in await testbed.data("GET", "/v1/projects")]
    assert sorted(names) == ["demo", "marker"]
    deployments = await testbed.data("GET", "/v1/deployments?project=demo")
    assert [item["id"] for item in deployments] == ["dep_demo"]
    for path in ("/v1/deployments/dep_hidden", "/v1/runs/run_hidden"):
        assert (await testbed.call("GET", path))[0] == 404
    assert [item["id"] for item in await testbed.data("GET", "/v1/runs")] == ["run_marker"]
    assert (await testbed.call("DELETE", "/v1/projects/demo"))[0] == 204

    async def is_theirs():
        status, found, _ = await testbed.call("GET", "/v1/projects/demo")
        return status == 200 and found["data"]["namespace"] == team.namespace

    await until(is_theirs)
    assert (await testbed.call("GET", "/v1/deployments/dep_hidden"))[0] == 200


@pytest.mark.parametrize(("namespace", "status"), [("kube-system", 400), ("No_Name", 400), ("x" * 64, 400)])
async def test_only_served_namespaces_take_projects(testbed, namespace, status):
    body = {"name": "demo", "namespace": namespace}
    assert (await testbed.call("POST", "/v1/projects", body))[0] == status


async def test_a_key_of_a_project_creates_it_in_the_own_namespace_only(testbed, team):
    body = {"name": "CI", "scopes": ["deploy"], "projects": ["demo"]}
    key = (await testbed.data("POST", "/v1/api-keys", body))["key"]
    headers = {"Authorization": f"Bearer {key}"}
    theirs = {"name": "demo", "namespace": team.namespace}
    status, found, _ = await testbed.call("POST", "/v1/projects", theirs, headers=headers)
    assert (status, found["error"]["details"]["field"]) == (403, "namespace")
    assert (await testbed.call("POST", "/v1/projects", {"name": "demo"}, headers=headers))[0] == 201


async def test_users_of_kubectl_see_and_change_their_own_team_only(testbed, team):
    await testbed.data("POST", "/v1/projects", {"name": "ours"})
    await testbed.data("POST", "/v1/projects", {"name": "theirs", "namespace": team.namespace})
    for kube, project in ((testbed.kube, "ours"), (team, "theirs")):
        await deploy(testbed, kube, project)
        await testbed.data("POST", "/v1/runs", {"deployment": project})
    for kube, other_kube, mine, other in (
        (testbed.kube, team, "ours", "theirs"),
        (team, testbed.kube, "theirs", "ours"),
    ):
        await account(kube, "member", "read", "run", "deploy")
        headers = {"Authorization": f"Bearer {await token(kube, 'member')}"}

        async def call(method, path, body=None, headers=headers):
            status, found, _ = await testbed.call(method, path, body, headers=headers)
            return status, found

        assert [item["name"] for item in (await call("GET", "/v1/projects"))[1]["data"]] == [mine]
        runs = (await call("GET", "/v1/runs"))[1]["data"]
        assert [item["deployment_id"] for item in runs] == [f"dep_{mine}"]
        for path in (f"/v1/projects/{other}", f"/v1/deployments/dep_{other}", f"/v1/projects/{other}/env"):
            assert (await call("GET", path))[0] == 404
        assert (await call("GET", f"/v1/deployments?project={other}"))[0] == 403
        assert (await call("POST", "/v1/runs", {"deployment": other}))[0] == 403
        assert (await call("POST", "/v1/runs", {"deployment": mine}))[0] == 201
        foreign = {"name": "new", "namespace": other_kube.namespace}
        assert (await call("POST", "/v1/projects", foreign))[0] == 403
        own_new = {"name": f"new-{mine}", "namespace": kube.namespace}
        assert (await call("POST", "/v1/projects", own_new))[0] == 201
        assert (await call("GET", f"/v1/projects/new-{mine}"))[0] == 200
        assert await kube.get(PROJECT, f"new-{mine}")
        assert (await call("GET", "/v1/installation"))[0] == 403


async def test_who_has_rights_in_all_namespaces_sees_all(testbed, team):
    await testbed.data("POST", "/v1/projects", {"name": "ours"})
    await testbed.data("POST", "/v1/projects", {"name": "theirs", "namespace": team.namespace})
    await account(testbed.kube, "operator", "read")
    headers = {"Authorization": f"Bearer {await token(testbed.kube, 'operator')}"}
    role = {
        "metadata": {"name": "operator"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "operator"},
        "subjects": [{"kind": "ServiceAccount", "name": "operator", "namespace": testbed.kube.namespace}],
    }
    group = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{team.namespace}"
    rules = [{"apiGroups": ["crewyard.dev"], "resources": ["runs"], "verbs": ["get"]}]
    await team.call("POST", f"{group}/roles", body={"metadata": {"name": "operator"}, "rules": rules})
    await team.call("POST", f"{group}/rolebindings", body=role)

    async def sees_both():
        _, found, _ = await testbed.call("GET", "/v1/projects", headers=headers)
        return sorted(item["name"] for item in found["data"]) == ["ours", "theirs"]

    # Requests with a ServiceAccount token have a rate, too.
    await until(sees_both, 1.0)
    status, _, _ = await testbed.call("POST", "/v1/projects", {"name": "new"}, headers=headers)
    assert status == 403


async def test_a_quota_of_one_namespace_refuses_nothing_in_the_other(testbed, team):
    await testbed.data("POST", "/v1/projects", {"name": "ours"})
    await testbed.data("POST", "/v1/projects", {"name": "theirs", "namespace": team.namespace})
    for kube, project in ((testbed.kube, "ours"), (team, "theirs")):
        await deploy(testbed, kube, project)
    await refuse_all(team, RUN)
    assert (await testbed.call("POST", "/v1/runs", {"deployment": "theirs"}))[0] >= 400
    assert (await testbed.call("POST", "/v1/runs", {"deployment": "ours"}))[0] == 201
