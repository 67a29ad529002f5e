"""Artifacts: lists, downloads and ranges."""

import asyncio
import hashlib

import aiohttp
import pytest

from api.http import ranges

CONTENT = b"0123456789"
SHA = hashlib.sha256(CONTENT).hexdigest()
NAMES = [
    "nested/report.md",
    "a b.txt",
    "ü ✓.json",
    'quote".txt',
    "100%.csv",
    "%2F",
    "semi;colon",
    "...",
    "a\nb.txt",
    "\r\n\n",
]


async def stream(content):
    yield content


async def put_artifact(testbed, name, content=CONTENT, kind="text/plain"):
    blob = f"artifacts/{hashlib.sha256(name.encode()).hexdigest()}"
    stored = await testbed.store.blobs.put(blob, stream(content), len(content), None)
    await testbed.store.artifacts.put(
        "run-a", name, stored.size, stored.sha256, kind, False, blob, testbed.clock[0]
    )


@pytest.fixture
async def run(testbed):
    await testbed.add_project("crew")
    raw = await testbed.add_run("run-a", "crew")
    await testbed.claim_run(raw)
    return raw


async def test_list_and_download(testbed, run):
    for name in NAMES:
        await put_artifact(testbed, name, name.encode())
    listed = await testbed.get("/v1/runs/run_a/artifacts")
    assert [item["name"] for item in listed["data"]] == NAMES[::-1]
    assert listed["pagination"]["total"] == len(NAMES)
    for item in listed["data"]:
        assert set(item) == {"name", "size", "content_type", "sha256", "partial", "created_at", "url"}
        address = item["url"].removeprefix("http://crewyard.example")
        from yarl import URL

        status, raw, headers = await testbed.call("GET", URL(address, encoded=True))
        assert (status, raw) == (200, item["name"].encode()), address
        assert headers["ETag"] == f'"{item["sha256"]}"'
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["Content-Disposition"].startswith("attachment;")


async def test_download_of_file_replaced_meanwhile(testbed, run, monkeypatch):
    await put_artifact(testbed, "data.bin", b"first")
    original = await testbed.store.artifacts.get("run-a", "data.bin")
    real, rows = testbed.store.artifacts.get, []

    async def get(*names):
        row = await real(*names)
        rows.append(row)
        if len(rows) == 1:
            # Replace the file meanwhile: new row, new blob, old blob deleted.
            await testbed.store.artifacts.put(
                "run-a", "data.bin", 3, SHA, "text/plain", False, "b", testbed.clock[0]
            )
            await testbed.store.blobs.put("b", stream(b"new"), 3, None)
            await testbed.store.blobs.delete(original.blob)
        return row

    monkeypatch.setattr(testbed.store.artifacts, "get", get)
    status, raw, sent = await testbed.call("GET", "/v1/runs/run_a/artifacts/data.bin")
    assert (status, raw, sent["ETag"]) == (200, b"new", f'"{SHA}"')
    # A deleted blob ends the retries.
    await testbed.store.blobs.delete("b")
    assert (await testbed.call("GET", "/v1/runs/run_a/artifacts/data.bin"))[0] == 404


async def test_ranges_and_validators(testbed, run):
    await put_artifact(testbed, "data.bin")
    path = "/v1/runs/run_a/artifacts/data.bin"

    async def get(method="GET", **headers):
        names = {name.replace("_", "-"): value for name, value in headers.items()}
        status, raw, sent = await testbed.call(method, path, headers=names)
        return status, raw, sent

    assert (await get(Range="bytes=2-4"))[:2] == (206, b"234")
    assert (await get(Range="bytes=-3"))[:2] == (206, b"789")
    status, raw, headers = await get(Range="bytes=7-")
    assert (status, raw, headers["Content-Range"]) == (206, b"789", "bytes 7-9/10")
    status, body, headers = await get(Range="bytes=10-")
    assert (status, headers["Content-Range"]) == (416, "bytes */10")
    assert body["error"]["code"] == "range_not_satisfiable"
    assert (await get(If_None_Match=f'"{SHA}"'))[:2] == (304, b"")
    assert (await get(If_None_Match='"other"'))[:2] == (200, CONTENT)
    assert (await get(Range="bytes=0-0", If_Range=f'"{SHA}"'))[:2] == (206, b"0")
    assert (await get(Range="bytes=0-0", If_Range='"other"'))[:2] == (200, CONTENT)
    status, raw, headers = await get("HEAD")
    assert (status, raw, headers["Content-Length"]) == (200, b"", "10")


async def test_empty_and_missing_file(testbed, run):
    await put_artifact(testbed, "empty", b"")
    status, raw, headers = await testbed.call("GET", "/v1/runs/run_a/artifacts/empty")
    assert (status, raw, headers["Content-Length"]) == (200, b"", "0")
    status, body, _ = await testbed.call("GET", "/v1/runs/run_a/artifacts/none")
    assert (status, body["error"]["code"]) == (404, "not_found")


@pytest.mark.parametrize("left", [0, 4])
async def test_a_file_that_lost_bytes_ends_its_connection(testbed, run, tmp_path, left):
    """A client would wait for the rest, and take the next response on the connection for it."""
    await put_artifact(testbed, "damaged")
    [path] = [each for each in tmp_path.rglob("artifacts/*") if each.is_file()]
    path.write_bytes(CONTENT[:left])
    async with asyncio.timeout(30):
        if left:
            with pytest.raises(aiohttp.ClientPayloadError):
                await testbed.call("GET", "/v1/runs/run_a/artifacts/damaged")
        else:
            assert (await testbed.call("GET", "/v1/runs/run_a/artifacts/damaged"))[0] == 503


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        (None, None),
        ("bytes=0-", (0, 10)),
        ("bytes=0-99", (0, 10)),
        ("bytes=-99", (0, 10)),
        ("BYTES=3-3", (3, 4)),
        ("bytes=5-2", None),
        ("bytes=0-1,3-4", None),
        ("items=0-1", None),
        ("bytes=-", None),
        ("bytes=٣-", None),
    ],
)
def test_parse_range(header, expected):
    assert ranges.parse_range(header, 10) == expected
