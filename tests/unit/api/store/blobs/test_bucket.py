"""Tests of blobs in a bucket: visible only when complete, 503 while the bucket is unreachable."""

import asyncio
import hashlib
import signal
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from api.config import ApiConfigError, parse
from api.store.blobs import backends
from api.store.blobs import blobs as blobs_module
from api.store.blobs.backends import BUCKET_PART_BYTES, bucket_blobs
from api.store.errors import Mismatch, Missing, StoreUnavailable
from api.store.store import Store
from tests.unit.api.store import builders
from tests.unit.api.store.blobs.test_blobs import chunks, read_all
from tests.unit.api.store.bucket import CREDENTIALS, S3Server

LARGE = bytes(range(256)) * (3 * BUCKET_PART_BYTES // 256) + b"the end"
SHA = hashlib.sha256(LARGE).hexdigest()


async def test_multipart_object_visible_when_complete(bucket: S3Server) -> None:
    blobs = bucket_blobs(f"s3://{bucket.new().name}")

    async def watched() -> AsyncIterator[bytes]:
        async for chunk in chunks(LARGE, 1_000_000):
            yield chunk
        with pytest.raises(Missing):
            await read_all(blobs.read("crews/a"))

    stored = await blobs.put("crews/a", watched(), len(LARGE), SHA)
    assert (stored.size, stored.sha256) == (len(LARGE), SHA)
    assert await read_all(blobs.read("crews/a")) == LARGE
    edge = BUCKET_PART_BYTES
    assert await read_all(blobs.read("crews/a", edge - 3, edge + 3)) == LARGE[edge - 3 : edge + 3]


async def test_failed_multipart_keeps_old_object(bucket: S3Server) -> None:
    blobs = bucket_blobs(f"s3://{bucket.new().name}")
    await blobs.put("crews/a", chunks(b"before"), 6, None)
    with pytest.raises(Mismatch):
        await blobs.put("crews/a", chunks(LARGE, 1_000_000), len(LARGE), "0" * 64)

    async def broken() -> AsyncIterator[bytes]:
        yield LARGE[: 2 * BUCKET_PART_BYTES]
        raise ConnectionResetError("the sender disconnected")

    with pytest.raises(StoreUnavailable):
        await blobs.put("crews/a", broken(), len(LARGE), SHA)
    assert await read_all(blobs.read("crews/a")) == b"before"


async def test_a_large_copy_may_take_longer_than_a_part(monkeypatch: pytest.MonkeyPatch) -> None:
    async def copied(_: web.Request) -> web.Response:
        await asyncio.sleep(1)
        return web.Response(text="<CopyObjectResult><ETag>x</ETag></CopyObjectResult>")

    app = web.Application()
    app.router.add_put("/b/{key:.*}", copied)
    async with TestServer(app) as server:
        variables = {**CREDENTIALS, "AWS_ENDPOINT_URL": str(server.make_url("")), "AWS_ALLOW_HTTP": "true"}
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        monkeypatch.setattr(backends, "PART_TIMEOUT", timedelta(seconds=0.3))
        monkeypatch.setattr(backends, "MAX_RETRIES", 0)
        monkeypatch.setattr(blobs_module, "NEXT_BYTES_TIMEOUT_SECONDS", 0.3)
        blobs = bucket_blobs("s3://b")
        with pytest.raises(StoreUnavailable):
            await blobs.copy("crews/a", "crews/b", 1)
        await blobs.copy("crews/a", "crews/b", 30 * blobs_module.MIN_BYTES_PER_SECOND)


async def test_upload_goes_to_bucket(bucket: S3Server, tmp_path: Path) -> None:
    place = bucket.new()
    store = await Store.open(tmp_path / "data", "crews", blobs_url=f"s3://{place.name}/prefix")
    row = await store.uploads.create("demo", 3, None, builders.NOW, builders.later(60))
    row = await store.receive(row.id, chunks(b"abc"), builders.NOW)
    assert (place / "prefix" / row.blob).read_bytes() == b"abc"
    assert await read_all(store.blobs.read(row.blob)) == b"abc"
    await store.close()


@pytest.mark.parametrize("how", ["gone", "silent"])
async def test_unreachable_bucket_shows_no_secret(bucket: S3Server, how: str) -> None:
    blobs = bucket_blobs(f"s3://{bucket.new().name}")
    await blobs.put("crews/a", chunks(b"abc"), 3, None)
    if how == "gone":
        bucket.stop()
    else:
        bucket.signal(signal.SIGSTOP)
    try:
        async with asyncio.timeout(60):
            with pytest.raises(StoreUnavailable) as raised:
                await read_all(blobs.read("crews/a"))
        assert CREDENTIALS["AWS_SECRET_ACCESS_KEY"] not in str(raised.value)
        if how == "gone":
            async with asyncio.timeout(60):
                with pytest.raises(StoreUnavailable):
                    await blobs.put("crews/b", chunks(b"abc"), 3, None)
                with pytest.raises(StoreUnavailable):
                    await blobs.delete("crews/a")
    finally:
        if how == "gone":
            bucket.start()
        else:
            bucket.signal(signal.SIGCONT)
    assert await read_all(blobs.read("crews/a")) == b"abc"


async def test_missing_bucket_is_unavailable(bucket: S3Server) -> None:
    with pytest.raises(StoreUnavailable):
        await bucket_blobs("s3://no-such-bucket").put("crews/a", chunks(b"abc"), 3, None)


@pytest.mark.parametrize("url", ["file:///tmp/x", "s3://", "s3://key:secret@bucket", "bucket"])
def test_invalid_bucket_url(url: str) -> None:
    with pytest.raises(ApiConfigError, match="CREWYARD_BLOBS_URL: must be s3://bucket/prefix"):
        parse({"CREWYARD_TOKEN_KEY": "k" * 32, "CREWYARD_BLOBS_URL": url})
