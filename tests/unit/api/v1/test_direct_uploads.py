"""Direct uploads to and downloads from a bucket; the API verifies the content."""

import asyncio
import hashlib
from datetime import UTC, datetime
from unittest.mock import AsyncMock

import aiohttp
import pytest
from yarl import URL

from api.services import SERVICES
from api.store.blobs.backends import bucket_blobs
from api.store.blobs.direct_upload import import_upload
from crds import pod_tokens
from tests.unit.api.store.conftest import bucket, s3_server
from tests.unit.api.v1.test_artifacts import put_artifact

__all__ = ["bucket", "s3_server"]

CONTENT = b"an archive" * 1000
SHA = hashlib.sha256(CONTENT).hexdigest()


@pytest.fixture
def clock():
    """The real time: the bucket compares signatures with its own clock."""
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
    """An API server whose blobs are in the bucket."""
    testbed.store.blobs = bucket_blobs(settings["CREWYARD_BLOBS_URL"])
    await testbed.add_project("crew")
    return testbed


async def request_bucket(method, url, data=None, **headers):
    async with (
        aiohttp.ClientSession() as session,
        session.request(method, URL(url, encoded=True), data=data, headers=headers) as answer,
    ):
        return answer.status, await answer.read(), answer.headers


async def create_upload(testbed, **more):
    body = {"project": "crew", "size": len(CONTENT), **more}
    return (await testbed.call("POST", "/v1/uploads", body))[1]["data"]


async def deploy(testbed, ticket):
    """What a deployment of the upload is answered; without an apiserver a good one is a 503."""
    body = {"project": "crew", "build_context_url": ticket["build_context_url"]}
    status, row, _ = await testbed.call("POST", "/v1/deployments", body)
    return status, row["error"]["message"]


@pytest.mark.parametrize("sha256", [None, SHA])
async def test_upload_in_bucket_is_imported_once(direct, bucket, sha256):
    ticket = await create_upload(direct, **({"sha256": sha256} if sha256 else {}))
    assert ticket["upload_url"].startswith(bucket.environment["AWS_ENDPOINT_URL"])
    assert ticket["build_context_url"].startswith("http://crewyard.example/v1/uploads/")
    status, message = await deploy(direct, ticket)
    assert status == 400 and "PUT" in message
    assert (await request_bucket("PUT", ticket["upload_url"], CONTENT, **ticket["headers"]))[0] == 200
    assert (await deploy(direct, ticket))[0] == 503
    row = await direct.store.uploads.get(ticket["id"])
    assert (row.sha256, row.stored_at) == (SHA, direct.clock[0])
    # A later write to the bucket does not change the imported upload.
    if sha256 is None:
        other = bytes(len(CONTENT))
        assert (await request_bucket("PUT", ticket["upload_url"], other, **ticket["headers"]))[0] == 200
    assert (await deploy(direct, ticket))[0] == 503
    assert b"".join([chunk async for chunk in direct.store.blobs.read(row.blob)]) == CONTENT


@pytest.mark.parametrize(("content", "counted"), [(CONTENT[:-1], 0), (bytes(len(CONTENT)), 1)])
async def test_mismatching_upload_in_bucket_is_refused(direct, content, counted):
    ticket = await create_upload(direct, sha256=SHA)
    row = await direct.store.uploads.get(ticket["id"])

    async def chunks():
        yield content

    # Like a bucket that does not verify checksums.
    await direct.store.blobs.put(row.blob.replace("/uploads/", "/incoming/"), chunks(), len(content), None)
    status, message = await deploy(direct, ticket)
    assert status == 400 and "send it again" in message
    report = (await direct.get("/v1/projects/crew/usage"))["data"]
    used = {use["name"]: use["used"] for use in report["limits"]}
    assert used["deployments_per_minute"] == counted
    row = await direct.store.uploads.get(ticket["id"])
    assert row.stored_at is None
    assert (await request_bucket("PUT", ticket["upload_url"], CONTENT, **ticket["headers"]))[0] == 200
    assert (await deploy(direct, ticket))[0] == 503


async def test_parallel_imports_agree(direct):
    ticket = await create_upload(direct)
    await request_bucket("PUT", ticket["upload_url"], CONTENT, **ticket["headers"])
    row = await direct.store.uploads.get(ticket["id"])
    store, now = direct.store, direct.clock[0]
    rows = await asyncio.gather(
        *(import_upload(store.uploads, store.blobs, row, now, AsyncMock()) for _ in range(3))
    )
    assert {row.sha256 for row in rows} == {SHA}


async def test_api_url_takes_upload_too(direct):
    ticket = await create_upload(direct)
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


async def test_full_download_from_bucket_range_from_api(direct, bucket):
    raw = await direct.add_run("run-a", "crew")
    await direct.claim_run(raw)
    await put_artifact(direct, "dir/ü b.html", CONTENT, "text/html")
    path = "/v1/runs/run_a/artifacts/dir/%C3%BC%20b.html"

    async def ask(method="GET", **headers):
        headers = {name.replace("_", "-"): value for name, value in headers.items()}
        return await direct.call(method, URL(path, encoded=True), headers=headers, allow_redirects=False)

    status, body, headers = await ask()
    assert (status, body, headers["ETag"]) == (307, b"", f'"{SHA}"')
    assert headers["Location"].startswith(bucket.environment["AWS_ENDPOINT_URL"])
    status, body, bucket_headers = await request_bucket("GET", headers["Location"])
    assert (status, body) == (200, CONTENT)
    assert (
        bucket_headers["Content-Disposition"].startswith("attachment;")
        and bucket_headers["Content-Type"] == "text/html"
    )
    assert (await request_bucket("GET", headers["Location"], Range="bytes=2-4"))[:2] == (206, CONTENT[2:5])
    status, body, api_headers = await ask(Range="bytes=2-4", If_Range=f'"{SHA}"')
    assert (status, body, api_headers["ETag"]) == (206, CONTENT[2:5], f'"{SHA}"')
    assert (await ask(If_None_Match=f'"{SHA}"'))[0] == 304
    status, _, api_headers = await ask("HEAD")
    assert (status, api_headers["Content-Length"], api_headers["ETag"]) == (
        200,
        str(len(CONTENT)),
        f'"{SHA}"',
    )
