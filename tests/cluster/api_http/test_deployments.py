"""Deployments through the API: created once, visible immediately, rolled back."""

import asyncio
import hashlib

import pytest

from crds.kinds import DEPLOYMENT
from crds.names import (
    ANNOTATION_CLOSED,
    ANNOTATION_CREATED_BY,
    ANNOTATION_ERASED,
    ANNOTATION_POLLED,
    id_of,
    name_of,
)

CONTENT = b"an archive"


@pytest.fixture
async def project(testbed):
    return (await testbed.data("POST", "/v1/projects", {"name": "crew"}))["name"]


async def upload(testbed, project, content=CONTENT):
    ticket = await testbed.data("POST", "/v1/uploads", {"project": project, "size": len(content)})
    path = ticket["upload_url"].removeprefix("http://crewyard.example")
    async with testbed.client.put(path, data=content, headers=ticket["headers"]) as answer:
        assert answer.status == 200
    return ticket


async def test_upload_becomes_a_deployment(testbed, project):
    ticket = await upload(testbed, project)
    body = {
        "project": project,
        "build_context_url": ticket["build_context_url"],
        "message": "Begin",
        "git_sha": "abcdef0",
        "crew": "other",
        "preview": {"pull_request": 5},
    }
    status, found, headers = await testbed.call("POST", "/v1/deployments", body)
    assert status == 201, found
    made = found["data"]
    assert set(made) == {"id", "project", "status", "message", "created_at"}
    assert made["status"] == "pending" and made["message"] == "Begin"
    assert headers["Location"] == f"/v1/deployments/{made['id']}"
    stored = await testbed.kube.get(DEPLOYMENT, name_of(made["id"]))
    sha256 = hashlib.sha256(CONTENT).hexdigest()
    assert stored["spec"]["source"] == {"archive": {"upload": ticket["id"], "sha256": sha256}}
    assert (stored["spec"]["crew"], stored["spec"]["preview"]) == ("other", {"pullRequest": 5})
    assert stored["metadata"]["ownerReferences"][0]["kind"] == "Project"
    assert stored["metadata"]["labels"]["crewyard.dev/project"] == project
    deployment = await testbed.data("GET", f"/v1/deployments/{made['id']}")
    assert (deployment["git_sha"], deployment["activated_at"]) == ("abcdef0", None)


async def test_response_waits_for_the_first_status(testbed, project, monkeypatch):
    # The test checks that the request waits, not the latency of the simulated controller.
    monkeypatch.setattr("api.v1.deployments.create.FIRST_STATUS_TIMEOUT_SECONDS", 60.0)
    ticket = await upload(testbed, project)

    async def set_building():
        while not (found := (await testbed.kube.list(DEPLOYMENT)).items):
            await asyncio.sleep(0.02)
        await testbed.patch_status(DEPLOYMENT, found[0]["metadata"]["name"], phase="Building")

    building = asyncio.create_task(set_building())
    body = {"project": project, "build_context_url": ticket["build_context_url"]}
    assert (await testbed.data("POST", "/v1/deployments", body))["status"] == "building"
    await building


async def test_repeated_request_creates_one_deployment(testbed, project):
    ticket = await upload(testbed, project)
    body = {"project": project, "build_context_url": ticket["build_context_url"]}
    headers = {"Idempotency-Key": "job-1"}
    first = await testbed.data("POST", "/v1/deployments", body, headers=headers)
    again = await testbed.data("POST", "/v1/deployments", body, headers=headers)
    assert first["id"] == again["id"]
    assert len((await testbed.kube.list(DEPLOYMENT)).items) == 1
    other = {**body, "message": "other"}
    status, found, _ = await testbed.call("POST", "/v1/deployments", other, headers=headers)
    assert (status, found["error"]["code"]) == (409, "conflict")
    status, found, _ = await testbed.call("POST", "/v1/deployments", body, headers={"Idempotency-Key": "a b"})
    assert (status, found["error"]["details"]["field"]) == (400, "Idempotency-Key")


async def test_commit_has_one_deployment_until_it_fails(testbed):
    git = {"url": "https://git.example/x.git", "path": "crews/a"}
    await testbed.data("POST", "/v1/projects", {"name": "crew", "source": {"git": git}})
    body = {"project": "crew", "source": {"git": {"commit": "a" * 40}}, "message": "Begin"}
    first = await testbed.data("POST", "/v1/deployments", body)
    # A polled deployment may be superseded by a newer commit; a requested one may not.
    polled = {"metadata": {"annotations": {ANNOTATION_POLLED: "true"}}}
    await testbed.kube.patch(DEPLOYMENT, name_of(first["id"]), polled)
    assert (await testbed.data("POST", "/v1/deployments", {**body, "message": "Again"}))["id"] == first["id"]
    stored = await testbed.kube.get(DEPLOYMENT, name_of(first["id"]))
    assert set(stored["metadata"]["annotations"]) == {ANNOTATION_CREATED_BY}
    assert stored["spec"]["source"] == {"git": {**git, "commit": "a" * 40}}
    assert (stored["spec"]["gitSha"], stored["spec"]["attempt"]) == ("a" * 40, 1)
    error = {"reason": "BuildFailed", "message": "no wheel"}
    await testbed.patch_status(DEPLOYMENT, name_of(first["id"]), phase="Failed", error=error)

    async def deployment_status():
        return (await testbed.data("GET", f"/v1/deployments/{first['id']}"))["status"]

    while await deployment_status() != "failed":
        await asyncio.sleep(0.02)
    second = await testbed.data("POST", "/v1/deployments", body)
    assert second["id"] != first["id"]
    assert (await testbed.kube.get(DEPLOYMENT, name_of(second["id"])))["spec"]["attempt"] == 2
    listed = await testbed.data("GET", "/v1/deployments?project=crew")
    assert [item["id"] for item in listed] == [second["id"], first["id"]]


async def test_commit_of_a_deleted_deployment_is_redeployed(testbed):
    git = {"url": "https://git.example/x.git"}
    await testbed.data("POST", "/v1/projects", {"name": "crew", "source": {"git": git}})
    body = {"project": "crew", "source": {"git": {"commit": "a" * 40}}}
    for _ in range(3):
        first = await testbed.data("POST", "/v1/deployments", body)
        before = await testbed.kube.get(DEPLOYMENT, name_of(first["id"]))
        await testbed.kube.delete(DEPLOYMENT, name_of(first["id"]))
        # The watch may not have reported it yet.
        again = await testbed.data("POST", "/v1/deployments", body)
        after = await testbed.kube.get(DEPLOYMENT, name_of(again["id"]))
        assert after is not None
        assert after["metadata"]["uid"] != before["metadata"]["uid"]


async def preview(testbed):
    """Return id and name of the preview of a commit."""
    body = {"project": "crew", "source": {"git": {"commit": "a" * 40}}, "preview": {"pull_request": 7}}
    created = await testbed.data("POST", "/v1/deployments", body)
    return created["id"], name_of(created["id"])


@pytest.fixture
async def followed(testbed):
    git = {"url": "https://git.example/x.git"}
    await testbed.data("POST", "/v1/projects", {"name": "crew", "source": {"git": git}})


@pytest.mark.usefixtures("followed")
async def test_preview_of_a_reopened_pull_request_is_kept(testbed):
    first, name = await preview(testbed)
    closed = {"metadata": {"annotations": {ANNOTATION_CLOSED: "pull request 7"}}}
    await testbed.kube.patch(DEPLOYMENT, name, closed)
    await testbed.mark_built("crew", name, active=False)
    assert await preview(testbed) == (first, name)
    assert ANNOTATION_CLOSED not in (await testbed.kube.get(DEPLOYMENT, name))["metadata"]["annotations"]


@pytest.mark.usefixtures("followed")
async def test_preview_that_is_being_deleted_is_built_again(testbed):
    first, name = await preview(testbed)
    await testbed.kube.patch(DEPLOYMENT, name, {"metadata": {"finalizers": ["crewyard.dev/test"]}})
    await testbed.mark_built("crew", name, active=False)
    await testbed.kube.delete(DEPLOYMENT, name)
    second, second_name = await preview(testbed)
    assert second != first
    assert (await testbed.kube.get(DEPLOYMENT, second_name))["spec"]["attempt"] == 2
    await testbed.kube.patch(DEPLOYMENT, name, {"metadata": {"finalizers": None}})


async def test_rollback_is_one_patch_and_waits_until_done(testbed, project, monkeypatch):
    monkeypatch.setattr("api.v1.deployments.routes.ROLLBACK_TIMEOUT_SECONDS", 60.0)
    ids = []
    for _ in range(2):
        ticket = await upload(testbed, project)
        body = {"project": project, "build_context_url": ticket["build_context_url"]}
        ids.append((await testbed.data("POST", "/v1/deployments", body))["id"])
    old, new = map(name_of, ids)
    await testbed.mark_built(project, old)
    await testbed.mark_built(project, new)
    await testbed.patch_status(DEPLOYMENT, old, phase="Superseded")
    # The API sees these statuses through its watch.
    for name, expected in ((old, "superseded"), (new, "active")):
        while (await testbed.data("GET", f"/v1/deployments/{id_of(name)}"))["status"] != expected:
            await asyncio.sleep(0.02)

    async def controller():
        while not (await testbed.kube.get(DEPLOYMENT, old))["spec"].get("activation"):
            await asyncio.sleep(0.02)
        await testbed.mark_built(project, old)
        await testbed.patch_status(DEPLOYMENT, new, phase="Superseded")

    answering = asyncio.create_task(controller())
    back = await testbed.data("POST", f"/v1/deployments/{id_of(old)}/rollback", {})
    await answering
    assert (back["id"], back["status"]) == (id_of(old), "active")
    statuses = {
        item["id"]: item["status"] for item in await testbed.data("GET", "/v1/deployments?project=crew")
    }
    assert statuses == {id_of(old): "active", id_of(new): "superseded"}
    assert (await testbed.data("GET", "/v1/projects/crew"))["active_deployment_id"] == id_of(old)
    assert (await testbed.data("POST", f"/v1/deployments/{id_of(old)}/rollback"))["status"] == "active"


async def test_rollback_to_unbuilt_or_preview_is_refused(testbed, project):
    ticket = await upload(testbed, project)
    body = {"project": project, "build_context_url": ticket["build_context_url"]}
    made = await testbed.data("POST", "/v1/deployments", body)
    status, found, _ = await testbed.call("POST", f"/v1/deployments/{made['id']}/rollback", {})
    assert (status, found["error"]["code"]) == (409, "conflict")
    preview = await testbed.data("POST", "/v1/deployments", {**body, "preview": {}})
    await testbed.mark_built(project, name_of(preview["id"]), active=False)
    status, found, _ = await testbed.call("POST", f"/v1/deployments/{preview['id']}/rollback", {})
    assert status == 409 and "preview" in found["error"]["message"]


async def test_cancel_answers_as_the_cancel_of_a_run(testbed, project):
    ticket = await upload(testbed, project)
    body = {"project": project, "build_context_url": ticket["build_context_url"]}
    made = await testbed.data("POST", "/v1/deployments", body)
    path, name = f"/v1/deployments/{made['id']}", name_of(made["id"])
    status, found, _ = await testbed.call("POST", f"{path}/cancel")
    assert (status, found["data"]["cancel_requested"]) == (202, True)
    assert (await testbed.kube.get(DEPLOYMENT, name))["spec"]["cancel"] is True
    assert (await testbed.call("POST", f"{path}/cancel", {}))[0] == 202
    error = {"reason": "Canceled", "message": "The build was canceled."}
    await testbed.patch_status(DEPLOYMENT, name, phase="Failed", error=error)

    async def wait_status(expected):
        while (shown := await testbed.data("GET", path))["status"] != expected:
            await asyncio.sleep(0.02)
        return shown

    assert "cancel_requested" not in await wait_status("failed")
    status, found, _ = await testbed.call("POST", f"{path}/cancel")
    assert (status, found["data"]["error"]["reason"]) == (200, "Canceled")
    built = await testbed.data("POST", "/v1/deployments", body)
    await testbed.mark_built(project, name_of(built["id"]))
    path = f"/v1/deployments/{built['id']}"
    # Whether its watch has shown the end or the kube-apiserver refuses: not canceled.
    status, found, _ = await testbed.call("POST", f"{path}/cancel")
    assert status in (409, 503)
    await wait_status("active")
    status, found, _ = await testbed.call("POST", f"{path}/cancel")
    assert (status, found["error"]["details"]["status"]) == (409, "active")


async def test_an_erased_deployment_is_marked_and_stays_hidden(testbed, project):
    ticket = await upload(testbed, project)
    body = {"project": project, "build_context_url": ticket["build_context_url"]}
    used, unused = [await testbed.data("POST", "/v1/deployments", body) for _ in range(2)]
    await testbed.mark_built(project, name_of(unused["id"]), active=False)
    await testbed.mark_built(project, name_of(used["id"]))
    async with asyncio.timeout(180):
        while (await testbed.data("GET", f"/v1/deployments/{used['id']}"))["status"] != "active":
            await asyncio.sleep(0.05)
    status, found, _ = await testbed.call("DELETE", f"/v1/deployments/{used['id']}")
    assert status == 409 and "roll back to another one" in found["error"]["message"]
    assert (await testbed.call("DELETE", f"/v1/deployments/{unused['id']}"))[0] == 204
    marked = await testbed.kube.get(DEPLOYMENT, name_of(unused["id"]))
    assert ANNOTATION_ERASED in marked["metadata"]["annotations"]
    # The controller's next write reaches the API by the watch, like any later change of another object.
    await testbed.patch_status(DEPLOYMENT, name_of(unused["id"]), message="later")
    again = await testbed.data("POST", "/v1/deployments", body)
    await testbed.mark_built(project, name_of(again["id"]), active=False)
    async with asyncio.timeout(180):
        while (await testbed.data("GET", f"/v1/deployments/{again['id']}"))["status"] != "superseded":
            await asyncio.sleep(0.05)
    assert (await testbed.call("GET", f"/v1/deployments/{unused['id']}"))[0] == 404
