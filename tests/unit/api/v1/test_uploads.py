"""Uploads: created, sent to a signed URL, deployed."""

import hashlib
from datetime import timedelta

import pytest

from crds.deployment_name import git_name

CONTENT = b"an archive" * 1000


@pytest.fixture
async def ticket(testbed):
    await testbed.add_project("crew")
    body = {"project": "crew", "size": len(CONTENT), "sha256": hashlib.sha256(CONTENT).hexdigest()}
    status, response_body, headers = await testbed.call("POST", "/v1/uploads", body)
    assert status == 201
    assert headers["Location"] == f"/v1/uploads/{response_body['data']['id']}/content"
    return response_body["data"]


def path_of(address: str) -> str:
    return address.removeprefix("http://crewyard.example")


async def put_content(testbed, ticket, content=CONTENT, path=None):
    return await testbed.call(
        ticket["method"],
        path or path_of(ticket["upload_url"]),
        data=content,
        bearer="",
        headers=ticket["headers"],
    )


async def test_upload_to_signed_url_without_key(testbed, ticket):
    assert set(ticket) == {"id", "upload_url", "build_context_url", "method", "headers", "expires_at"}
    assert "token=" in ticket["upload_url"] and "token=" not in ticket["build_context_url"]
    status, body, headers = await put_content(testbed, ticket)
    assert status == 200
    stored = {"id": ticket["id"], "size": len(CONTENT), "sha256": hashlib.sha256(CONTENT).hexdigest()}
    assert body == {"data": stored}
    assert headers["X-RateLimit-Limit"]
    assert (await put_content(testbed, ticket))[0] == 200  # Retried after a lost response.


async def test_mismatching_upload_is_refused(testbed, ticket):
    assert (await put_content(testbed, ticket, CONTENT[:-1]))[1]["error"]["details"]["field"] == "size"
    status, body, _ = await put_content(testbed, ticket, CONTENT[:-1] + b"x")
    assert (status, body["error"]["code"]) == (400, "invalid_request")

    async def chunked():
        yield CONTENT
        yield b"more"

    assert (await put_content(testbed, ticket, chunked()))[0] in (400, 413)
    assert (await put_content(testbed, ticket))[0] == 200


async def test_invalid_upload_url_is_refused(testbed, ticket):
    path = path_of(ticket["upload_url"])
    for wrong in (
        path.split("?")[0],
        path[:-3] + ("aaa" if not path.endswith("aaa") else "bbb"),
        path.replace(ticket["id"], "upl_other"),
        path.split("?")[0] + "?token=" + "%00" * 9,
    ):
        status, body, _ = await put_content(testbed, ticket, path=wrong)
        assert (status, body["error"]["code"]) == (403, "forbidden"), wrong
    testbed.clock[0] += timedelta(hours=2)
    assert (await put_content(testbed, ticket))[0] == 403


async def test_upload_url_is_valid_only_for_its_upload(testbed, ticket):
    await testbed.add_project("other")
    body = {"project": "other", "size": len(CONTENT), "sha256": hashlib.sha256(CONTENT).hexdigest()}
    _, response_body, _ = await testbed.call("POST", "/v1/uploads", body)
    other, own = response_body["data"], path_of(ticket["upload_url"]).partition("?")
    assert (await put_content(testbed, ticket, path=f"/v1/uploads/{other['id']}/content?{own[2]}"))[0] == 403
    assert (await put_content(testbed, ticket))[0] == 200
    body = {"project": "other", "build_context_url": other["build_context_url"]}
    status, response, _ = await testbed.call("POST", "/v1/deployments", body)
    assert (status, response["error"]["details"]["field"]) == (400, "build_context_url")


async def test_too_large_upload_is_refused_at_creation(testbed, ticket):
    status, body, _ = await testbed.call("POST", "/v1/uploads", {"project": "crew", "size": 1 << 40})
    assert (status, body["error"]["code"]) == (413, "payload_too_large")


async def test_upload_quota_of_project(testbed):
    await testbed.add_project("crew")
    body = {"project": "crew", "size": 100 * 1024 * 1024}
    for _ in range(51):
        assert (await testbed.call("POST", "/v1/uploads", body))[0] == 201
    status, response, headers = await testbed.call("POST", "/v1/uploads", body)
    assert (status, response["error"]["code"]) == (429, "rate_limited")
    assert response["error"]["details"]["limit_bytes"] == 5 << 30 and int(headers["Retry-After"]) > 0
    assert "CREWYARD_KEPT_UPLOADS" in response["error"]["message"]


@pytest.mark.parametrize(
    "address",
    [
        "https://elsewhere.example/v1/uploads/upl_1/content",
        "http://crewyard.example.evil.example/v1/uploads/upl_1/content",
        "http://crewyard.example@evil.example/v1/uploads/upl_1/content",
        "http://crewyard.example/v1/uploads/../uploads/upl_1/content",
        "http://crewyard.example/v1/uploads/upl_1",
        "file:///etc/passwd",
        "http://[",
        "upl_1",
    ],
)
async def test_foreign_build_context_is_refused(testbed, address):
    await testbed.add_project("crew")
    body = {"project": "crew", "build_context_url": address}
    status, response, _ = await testbed.call("POST", "/v1/deployments", body)
    assert (status, response["error"]["details"]["field"]) == (400, "build_context_url")
    assert "POST /v1/uploads" in response["error"]["message"]


async def test_build_context_without_content_or_of_other_project(testbed, ticket):
    await testbed.add_project("other")
    body = {"project": "crew", "build_context_url": ticket["build_context_url"]}
    status, response, _ = await testbed.call("POST", "/v1/deployments", body)
    assert status == 400 and "PUT" in response["error"]["message"]
    await put_content(testbed, ticket)
    status, response, _ = await testbed.call("POST", "/v1/deployments", {**body, "project": "other"})
    assert (status, response["error"]["details"]["field"]) == (400, "build_context_url")


async def test_upload_for_git_project_needs_override(testbed):
    await testbed.add_project("crew", {"source": {"git": {"url": "https://git.example/x.git"}}})
    body = {"project": "crew", "build_context_url": "http://crewyard.example/v1/uploads/upl_1/content"}
    status, response, _ = await testbed.call("POST", "/v1/deployments", body)
    assert (status, response["error"]["code"]) == (409, "conflict")
    assert "override" in response["error"]["message"]
    status, _, _ = await testbed.call("POST", "/v1/deployments", {**body, "override": True})
    assert status == 400


async def test_commit_for_project_without_repository(testbed):
    await testbed.add_project("crew")
    body = {"project": "crew", "source": {"git": {"commit": "a" * 40}}}
    status, response, _ = await testbed.call("POST", "/v1/deployments", body)
    assert (status, response["error"]["details"]["field"]) == (409, "source.git")
    both = {**body, "build_context_url": "x"}
    assert (await testbed.call("POST", "/v1/deployments", both))[0] == 400
    assert (await testbed.call("POST", "/v1/deployments", {"project": "crew"}))[0] == 400


async def test_idempotency_key_belongs_to_one_api_key(testbed):
    git = {"url": "https://git.example/x.git"}
    uid = await testbed.add_project("crew", {"source": {"git": git}})
    for letter in "ab":
        commit = letter * 40
        spec = {"source": {"git": {**git, "commit": commit}}, "gitSha": commit}
        name = git_name(uid, spec, 1)
        await testbed.add_deployment(name, "crew", "Superseded", spec)
        status, response, _ = await testbed.call(
            "POST",
            "/v1/deployments",
            {"project": "crew", "source": {"git": {"commit": commit}}},
            headers={"Idempotency-Key": "job-1"},
            bearer=testbed.create_key("deploy"),
        )
        assert (status, response["data"]["id"]) == (201, name.replace("-", "_"))


async def test_idempotency_key_returns_same_deployment_of_commit(testbed):
    git = {"url": "https://git.example/x.git"}
    uid = await testbed.add_project("crew", {"source": {"git": git}})
    commit = {**git, "commit": "a" * 40}
    spec = {"source": {"git": commit}, "gitSha": "a" * 40}
    name = git_name(uid, spec, 1)
    await testbed.add_deployment(name, "crew", "Superseded", spec)
    body = {"project": "crew", "source": {"git": {"commit": "a" * 40}}}
    headers = {"Idempotency-Key": "job-1"}
    first = await testbed.call("POST", "/v1/deployments", body, headers=headers)
    assert (first[0], first[1]["data"]["id"]) == (201, name.replace("-", "_"))
    # A repeated request returns the same deployment, even failed; another body is a conflict.
    await testbed.add_deployment(name, "crew", "Failed", spec)
    again = await testbed.call("POST", "/v1/deployments", body, headers=headers)
    assert (again[0], again[1]["data"]["id"]) == (201, name.replace("-", "_"))
    status, response_body, _ = await testbed.call(
        "POST", "/v1/deployments", {**body, "message": "m"}, headers=headers
    )
    assert (status, response_body["error"]["code"]) == (409, "conflict")
