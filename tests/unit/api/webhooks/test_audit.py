"""Records of deliveries in the audit log, with a kube-apiserver that takes annotations."""

import base64
import dataclasses

import pytest
from aiohttp import web

from api.services import SERVICES
from api.webhooks import routes
from crds.names import ANNOTATION_CLOSED, ANNOTATION_PUSHED_AT
from tests.testbed.apiserver import serving

CREWS = "/apis/crewyard.dev/v1alpha1/namespaces/crews"
SECRET_TEXT = "a secret of the webhook"
SPEC = {
    "source": {"git": {"url": "https://git.example.com/team/crew.git"}},
    "webhook": {"secretRef": {"name": "hook"}},
}
REPOSITORY = {"project": {"path_with_namespace": "team/crew", "default_branch": "main"}}
PUSH = {"ref": "refs/heads/main", **REPOSITORY}
CLOSED = {"object_attributes": {"action": "merge", "iid": 7}, **REPOSITORY}


@pytest.fixture
async def patched(testbed, monkeypatch):
    """Return names and annotations that were written; an apiserver without `refuse` takes them."""
    found = {"patches": [], "refuse": False}

    async def secret(_request):
        token = base64.b64encode(SECRET_TEXT.encode()).decode()
        return web.json_response({"metadata": {"name": "hook"}, "data": {"token": token}})

    async def patch(request):
        if found["refuse"]:
            return web.json_response({"kind": "Status", "reason": "Forbidden", "code": 403}, status=403)
        [annotation] = (await request.json())["metadata"]["annotations"]
        found["patches"].append((request.match_info["name"], annotation))
        return web.json_response({})

    taken = [
        web.get("/api/v1/namespaces/crews/secrets/hook", secret),
        web.patch(CREWS + "/{plural}/{name}", patch),
    ]
    await testbed.add_project("crew", SPEC)
    for name, preview in (("dep-a", {"pullRequest": 7}), ("dep-b", {"pullRequest": 7}), ("dep-c", None)):
        await testbed.add_deployment(name, "crew", spec={"preview": preview} if preview else {})
    async with serving(taken) as client:
        client.before_write = testbed.store.audit.record_ahead
        app = testbed.client.server.app
        monkeypatch.setitem(app._state, SERVICES, dataclasses.replace(app[SERVICES], kube=client))
        monkeypatch.setattr(app[routes._SECRETS], "_kube", client)
        yield found


async def deliver(testbed, event, payload, number=0):
    headers = {"X-Gitlab-Event": event, "X-Gitlab-Token": SECRET_TEXT, "X-Gitlab-Event-UUID": str(number)}
    return await testbed.call("POST", "/v1/hooks/git/crew", payload, bearer="", headers=headers)


async def records(testbed):
    found = (await testbed.get("/v1/audit"))["data"][::-1]
    assert {(one["actor"], one["project"]) for one in found} <= {("webhook:gitlab", "crew")}
    assert {(one["method"], one["path"]) for one in found} <= {("POST", "/v1/hooks/git/crew")}
    return [(one["target"], one["outcome"], one["code"]) for one in found]


async def test_a_push_is_recorded_once(testbed, patched):
    for number in (1, 1):
        assert (await deliver(testbed, "Push Hook", PUSH, number))[0] == 202
    assert patched["patches"] == [("crew", ANNOTATION_PUSHED_AT)]
    assert await records(testbed) == [("crew", "accepted", None)]


async def test_the_end_of_each_preview_is_recorded(testbed, patched):
    assert (await deliver(testbed, "Merge Request Hook", CLOSED))[1]["data"]["effect"] == "close"
    assert sorted(patched["patches"]) == [("dep-a", ANNOTATION_CLOSED), ("dep-b", ANNOTATION_CLOSED)]
    assert sorted(await records(testbed)) == [("dep_a", "accepted", None), ("dep_b", "accepted", None)]


async def test_merge_requests_that_one_push_closes_have_one_id(testbed, patched):
    """GitLab gives all deliveries of a webhook that follow from one request the same id."""
    await testbed.add_deployment("dep-d", "crew", spec={"preview": {"pullRequest": 8}})
    other = {**CLOSED, "object_attributes": {**CLOSED["object_attributes"], "iid": 8}}
    effects = [
        (await deliver(testbed, "Merge Request Hook", payload))[1]["data"]["effect"]
        for payload in (CLOSED, other, CLOSED)
    ]
    assert effects == ["close", "close", "none"]
    assert sorted(name for name, _ in patched["patches"]) == ["dep-a", "dep-b", "dep-d"]


async def test_a_delivery_that_fails_or_changes_nothing(testbed, patched):
    assert (await deliver(testbed, "Push Hook", {**PUSH, "ref": "refs/heads/next"}, 1))[0] == 202
    assert (await deliver(testbed, "Merge Request Hook", {**CLOSED, "object_attributes": {}}, 2))[0] == 202
    assert await records(testbed) == []
    patched["refuse"] = True
    assert (await deliver(testbed, "Push Hook", PUSH, 3))[0] == 500
    assert await records(testbed) == [("crew", "accepted", None), ("crew", "failed", "KubeForbidden")]
