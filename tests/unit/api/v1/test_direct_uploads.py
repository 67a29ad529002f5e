"""With a bucket that clients reach: archives are put and files are read there, and nothing is trusted."""

import asyncio
import hashlib
from datetime import UTC, datetime

import aiohttp
import pytest
from yarl import URL

from api.services import SERVICES
from api.store.blobs.backends import bucket_blobs
from api.store.blobs.direct_upload import import_upload
from crds import pod_tokens
from tests.unit.api.store.conftest import bucket, s3_server
from tests.unit.api.v1.test_artifacts import store

__all__ = ["bucket", "s3_server"]

CONTENT = b"an archive" * 1000
SHA = hashlib.sha256(CONTENT).hexdigest()


@pytest.fixture
def clock():
    """The bucket has its own clock, and compares."""
    return [datetime.now(UTC)]


@pytest.fixture
def settings(bucket):
    return {
        **bucket.environment,
        "CREWYARD_BLOBS_URL": f"s3://{bucket.new().name}/some/prefix",
        "CREWYARD_BLOBS_PUBLIC_URL": bucket.environment["AWS_ENDPOINT_URL"],
        "CREWYARD_BLOBS_DIRECT": "true",
    }


@pytest.fixture
async def direct(testbed, settings):
    """A facade whose blobs are in the bucket."""
    testbed.store.blobs = bucket_blobs(settings["CREWYARD_BLOBS_URL"])
    await testbed.add_project("crew")
    return testbed


async def at_bucket(method, url, data=None, **headers):
    async with (
        aiohttp.ClientSession() as session,
        session.request(method, URL(url, encoded=True), data=data, headers=headers) as answer,
    ):
        return answer.status, await answer.read(), answer.headers


async def announced(testbed, **more):
    body = {"project": "crew", "size": len(CONTENT), **more}
    return (await testbed.call("POST", "/v1/uploads", body))[1]["data"]


async def deploy(testbed, ticket):
    """What a deployment of the upload is answered; without an apiserver a good one is a 503."""
    body = {"project": "crew", "build_context_url": ticket["build_context_url"]}
    status, found, _ = await testbed.call("POST", "/v1/deployments", body)
    return status, found["error"]["message"]


@pytest.mark.parametrize("sha256", [None, SHA])
async def test_an_archive_put_into_the_bucket_is_taken_over_once_and_for_all(direct, bucket, sha256):
    ticket = await announced(direct, **({"sha256": sha256} if sha256 else {}))
    assert ticket["upload_url"].startswith(bucket.environment["AWS_ENDPOINT_URL"])
    assert ticket["build_context_url"].startswith("http://crewyard.example/v1/uploads/")
    status, message = await deploy(direct, ticket)
    assert status == 400 and "PUT" in message
    assert (await at_bucket("PUT", ticket["upload_url"], CONTENT, **ticket["headers"]))[0] == 200
    assert (await deploy(direct, ticket))[0] == 503
    row = await direct.store.uploads.get(ticket["id"])
    assert (row.sha256, row.stored_at) == (SHA, direct.clock[0])
    # What is put there later is not what was taken over.
    if sha256 is None:
        other = bytes(len(CONTENT))
        assert (await at_bucket("PUT", ticket["upload_url"], other, **ticket["headers"]))[0] == 200
    assert (await deploy(direct, ticket))[0] == 503
    assert b"".join([chunk async for chunk in direct.store.blobs.read(row.blob)]) == CONTENT


@pytest.mark.parametrize(("content", "field"), [(CONTENT[:-1], "size"), (bytes(len(CONTENT)), "sha256")])
async def test_what_is_not_what_was_announced_is_refused_whatever_the_bucket_took(direct, content, field):
    ticket = await announced(direct, sha256=SHA)
    row = await direct.store.uploads.get(ticket["id"])

    async def chunks():
        yield content

    # As a store would that checks nothing.
    await direct.store.blobs.put(row.blob.replace("/uploads/", "/incoming/"), chunks(), len(content), None)
    status, message = await deploy(direct, ticket)
    assert status == 400 and "send it again" in message
    row = await direct.store.uploads.get(ticket["id"])
    assert row.stored_at is None
    assert (await at_bucket("PUT", ticket["upload_url"], CONTENT, **ticket["headers"]))[0] == 200
    assert (await deploy(direct, ticket))[0] == 503


async def test_two_who_take_over_at_once_agree(direct):
    ticket = await announced(direct)
    await at_bucket("PUT", ticket["upload_url"], CONTENT, **ticket["headers"])
    row = await direct.store.uploads.get(ticket["id"])
    rows = await asyncio.gather(
        *(import_upload(direct.store.uploads, direct.store.blobs, row, direct.clock[0]) for _ in range(3))
    )
    assert {found.sha256 for found in rows} == {SHA}


async def test_the_facades_own_address_takes_an_upload_too(direct):
    ticket = await announced(direct)
    config = direct.client.server.app[SERVICES].config
    assert config.signer is not None
    row = await direct.store.uploads.get(ticket["id"])
    project = await direct.store.projects.get("crew")
    token = pod_tokens.mint(
        config.token_key, "upload", config.namespace, row.id, project.uid, int(row.expires_at.timestamp())
    )
    path = f"/v1/uploads/{row.id}/content?token={token}"
    assert (await direct.call("PUT", path, data=CONTENT, bearer=""))[0] == 200
    assert (await deploy(direct, ticket))[0] == 503


async def test_a_whole_file_is_read_from_the_bucket_and_a_part_from_here(direct, bucket):
    raw = await direct.run("run-a", "crew")
    await direct.claim(raw)
    await store(direct, "dir/ü b.html", CONTENT, "text/html")
    path = "/v1/runs/run_a/artifacts/dir/%C3%BC%20b.html"

    async def ask(method="GET", **headers):
        headers = {name.replace("_", "-"): value for name, value in headers.items()}
        return await direct.call(method, URL(path, encoded=True), headers=headers, allow_redirects=False)

    status, body, headers = await ask()
    assert (status, body, headers["ETag"]) == (307, b"", f'"{SHA}"')
    assert headers["Location"].startswith(bucket.environment["AWS_ENDPOINT_URL"])
    status, body, there = await at_bucket("GET", headers["Location"])
    assert (status, body) == (200, CONTENT)
    assert there["Content-Disposition"].startswith("attachment;") and there["Content-Type"] == "text/html"
    assert (await at_bucket("GET", headers["Location"], Range="bytes=2-4"))[:2] == (206, CONTENT[2:5])
    status, body, here = await ask(Range="bytes=2-4", If_Range=f'"{SHA}"')
    assert (status, body, here["ETag"]) == (206, CONTENT[2:5], f'"{SHA}"')
    assert (await ask(If_None_Match=f'"{SHA}"'))[0] == 304
    status, _, here = await ask("HEAD")
    assert (status, here["Content-Length"], here["ETag"]) == (200, str(len(CONTENT)), f'"{SHA}"')
