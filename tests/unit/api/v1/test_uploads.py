"""Uploads: announced, sent to a signed address, named by a deployment."""

import hashlib
from datetime import timedelta

import pytest

from crds.deployment_name import git_name

CONTENT = b"an archive" * 1000


@pytest.fixture
async def ticket(testbed):
    await testbed.add_project("crew")
    body = {"project": "crew", "size": len(CONTENT), "sha256": hashlib.sha256(CONTENT).hexdigest()}
    status, found, headers = await testbed.call("POST", "/v1/uploads", body)
    assert status == 201
    assert headers["Location"] == f"/v1/uploads/{found['data']['id']}/content"
    return found["data"]


def local(address: str) -> str:
    return address.removeprefix("http://crewyard.example")


async def put(testbed, ticket, content=CONTENT, path=None):
    return await testbed.call(
        ticket["method"],
        path or local(ticket["upload_url"]),
        data=content,
        bearer="",
        headers=ticket["headers"],
    )


async def test_an_upload_goes_to_its_address_without_a_key(testbed, ticket):
    assert set(ticket) == {"id", "upload_url", "build_context_url", "method", "headers", "expires_at"}
    assert "token=" in ticket["upload_url"] and "token=" not in ticket["build_context_url"]
    status, body, headers = await put(testbed, ticket)
    assert status == 200
    stored = {"id": ticket["id"], "size": len(CONTENT), "sha256": hashlib.sha256(CONTENT).hexdigest()}
    assert body == {"data": stored}
    assert headers["X-RateLimit-Limit"]
    assert (await put(testbed, ticket))[0] == 200  # Sent again after a lost answer.


async def test_other_bytes_than_announced_are_refused(testbed, ticket):
    assert (await put(testbed, ticket, CONTENT[:-1]))[1]["error"]["details"]["field"] == "size"
    status, body, _ = await put(testbed, ticket, CONTENT[:-1] + b"x")
    assert (status, body["error"]["code"]) == (400, "invalid_request")

    async def chunked():
        yield CONTENT
        yield b"more"

    assert (await put(testbed, ticket, chunked()))[0] in (400, 413)
    assert (await put(testbed, ticket))[0] == 200


async def test_an_address_that_does_not_hold(testbed, ticket):
    path = local(ticket["upload_url"])
    for wrong in (
        path.split("?")[0],
        path[:-3] + ("aaa" if not path.endswith("aaa") else "bbb"),
        path.replace(ticket["id"], "upl_other"),
        path.split("?")[0] + "?token=" + "%00" * 9,
    ):
        status, body, _ = await put(testbed, ticket, path=wrong)
        assert (status, body["error"]["code"]) == (403, "forbidden"), wrong
    testbed.clock[0] += timedelta(hours=2)
    assert (await put(testbed, ticket))[0] == 403


async def test_an_address_takes_its_own_upload_alone(testbed, ticket):
    await testbed.add_project("other")
    body = {"project": "other", "size": len(CONTENT), "sha256": hashlib.sha256(CONTENT).hexdigest()}
    _, found, _ = await testbed.call("POST", "/v1/uploads", body)
    other, own = found["data"], local(ticket["upload_url"]).partition("?")
    assert (await put(testbed, ticket, path=f"/v1/uploads/{other['id']}/content?{own[2]}"))[0] == 403
    assert (await put(testbed, ticket))[0] == 200
    body = {"project": "other", "build_context_url": other["build_context_url"]}
    status, answer, _ = await testbed.call("POST", "/v1/deployments", body)
    assert (status, answer["error"]["details"]["field"]) == (400, "build_context_url")


async def test_an_upload_that_is_too_large_is_refused_when_announced(testbed, ticket):
    status, body, _ = await testbed.call("POST", "/v1/uploads", {"project": "crew", "size": 1 << 40})
    assert (status, body["error"]["code"]) == (413, "payload_too_large")


async def test_a_project_whose_uploads_are_full_is_told_so(testbed):
    await testbed.add_project("crew")
    body = {"project": "crew", "size": 100 * 1024 * 1024}
    for _ in range(51):
        assert (await testbed.call("POST", "/v1/uploads", body))[0] == 201
    status, answer, headers = await testbed.call("POST", "/v1/uploads", body)
    assert (status, answer["error"]["code"]) == (429, "rate_limited")
    assert answer["error"]["details"]["limit_bytes"] == 5 << 30 and int(headers["Retry-After"]) > 0
    assert "CREWYARD_KEPT_UPLOADS" in answer["error"]["message"]


async def test_an_upload_for_a_project_that_is_not_there(testbed):
    status, body, _ = await testbed.call("POST", "/v1/uploads", {"project": "absent", "size": 1})
    assert (status, body["error"]["details"]) == (404, {"field": "project"})


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
async def test_a_foreign_build_context_is_refused_with_the_next_step(testbed, address):
    await testbed.add_project("crew")
    body = {"project": "crew", "build_context_url": address}
    status, answer, _ = await testbed.call("POST", "/v1/deployments", body)
    assert (status, answer["error"]["details"]["field"]) == (400, "build_context_url")
    assert "POST /v1/uploads" in answer["error"]["message"]


async def test_a_build_context_whose_bytes_are_missing_or_of_another_project(testbed, ticket):
    await testbed.add_project("other")
    body = {"project": "crew", "build_context_url": ticket["build_context_url"]}
    status, answer, _ = await testbed.call("POST", "/v1/deployments", body)
    assert status == 400 and "PUT" in answer["error"]["message"]
    await put(testbed, ticket)
    status, answer, _ = await testbed.call("POST", "/v1/deployments", {**body, "project": "other"})
    assert (status, answer["error"]["details"]["field"]) == (400, "build_context_url")


async def test_an_upload_to_a_project_that_follows_git_needs_to_override(testbed):
    await testbed.add_project("crew", {"source": {"git": {"url": "https://git.example/x.git"}}})
    body = {"project": "crew", "build_context_url": "http://crewyard.example/v1/uploads/upl_1/content"}
    status, answer, _ = await testbed.call("POST", "/v1/deployments", body)
    assert (status, answer["error"]["code"]) == (409, "conflict")
    assert "override" in answer["error"]["message"]
    status, _, _ = await testbed.call("POST", "/v1/deployments", {**body, "override": True})
    assert status == 400


async def test_a_commit_for_a_project_that_follows_nothing(testbed):
    await testbed.add_project("crew")
    body = {"project": "crew", "source": {"git": {"commit": "a" * 40}}}
    status, answer, _ = await testbed.call("POST", "/v1/deployments", body)
    assert (status, answer["error"]["details"]["field"]) == (409, "source.git")
    both = {**body, "build_context_url": "x"}
    assert (await testbed.call("POST", "/v1/deployments", both))[0] == 400
    assert (await testbed.call("POST", "/v1/deployments", {"project": "crew"}))[0] == 400


async def test_an_idempotency_key_gives_the_deployment_of_a_commit_it_gave_before(testbed):
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
    # Asked again it is the same one, whatever became of it; with another body the key is taken.
    await testbed.add_deployment(name, "crew", "Failed", spec)
    again = await testbed.call("POST", "/v1/deployments", body, headers=headers)
    assert (again[0], again[1]["data"]["id"]) == (201, name.replace("-", "_"))
    status, found, _ = await testbed.call(
        "POST", "/v1/deployments", {**body, "message": "m"}, headers=headers
    )
    assert (status, found["error"]["code"]) == (409, "conflict")
