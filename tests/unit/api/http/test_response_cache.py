"""Response cache: never stale, never shared between callers."""

import pytest

from api.http.response_cache import MAX_BODY_BYTES, MAX_RESPONSES, CachedResponse, ResponseCache

A = CachedResponse(b"{}", {})


@pytest.mark.parametrize(
    ("before", "after", "asked", "known"),
    [(1, 1, 1, True), (1, 1, 2, False), (1, 2, 2, False), (None, None, None, False), (1, None, 1, False)],
)
def test_response_is_valid_for_its_generation_only(before, after, asked, known):
    cache = ResponseCache()
    cache.put(before, after, "q", A)
    assert (cache.get(asked, "q") is A) is known
    assert cache.get(asked, "other") is None


def test_cache_is_bounded():
    cache = ResponseCache()
    for number in range(MAX_RESPONSES + 1):
        cache.put(1, 1, number, A)
    assert cache.get(1, 0) is None and cache.get(1, MAX_RESPONSES) is A
    cache.put(1, 1, "large", CachedResponse(b"x" * (MAX_BODY_BYTES + 1), {}))
    assert cache.get(1, "large") is None


async def test_change_is_visible_to_the_next_request(testbed):
    await testbed.add_project("shop")
    for path in (
        "/v1/runs",
        "/v1/runs?status=pending",
        "/v1/runs/run_1",
        "/v1/projects",
        "/v1/deployments/dep_a",
    ):
        await testbed.call("GET", path)
    raw = await testbed.add_run("run-1", "shop")
    for _ in range(2):
        assert [run["status"] for run in (await testbed.get("/v1/runs"))["data"]] == ["pending"]
        assert (await testbed.get("/v1/runs/run_1"))["data"]["status"] == "pending"
    await testbed.finish_run(raw, "Succeeded", durationMs=5)
    assert [run["status"] for run in (await testbed.get("/v1/runs"))["data"]] == ["succeeded"]
    assert (await testbed.get("/v1/runs?status=pending"))["data"] == []
    assert (await testbed.get("/v1/runs/run_1"))["data"]["status"] == "succeeded"


async def test_response_cache_is_byte_identical(testbed):
    await testbed.add_project("shop")
    await testbed.add_run("run-1", "shop")
    (_, first, before), (_, again, after) = [
        await testbed.call("GET", "/v1/runs?per_page=1") for _ in range(2)
    ]
    assert first == again
    for name in ("Link", "Content-Type", "Content-Length", "X-Content-Type-Options"):
        assert before[name] == after[name]
    assert before["X-Request-Id"] != after["X-Request-Id"]
    status, body, headers = await testbed.call("HEAD", "/v1/runs?per_page=1")
    assert (status, body) == (200, b"")
    assert headers["Content-Length"] == before["Content-Length"]


async def test_cached_response_is_not_shared_between_keys(testbed):
    await testbed.add_project("shop")
    await testbed.add_project("shed")
    await testbed.add_run("run-1", "shop")
    await testbed.add_run("run-2", "shed")
    one, other = testbed.create_key("read", projects=["shop"]), testbed.create_key("run", projects=["shed"])
    for _ in range(2):
        assert [run["id"] for run in (await testbed.get("/v1/runs", bearer=one))["data"]] == ["run_1"]
        assert [run["id"] for run in (await testbed.get("/v1/runs", bearer=other))["data"]] == ["run_2"]
        assert (await testbed.call("GET", "/v1/runs/run_1", bearer=one))[0] == 200
        assert (await testbed.call("GET", "/v1/runs/run_1", bearer=other))[0] == 404
    assert len((await testbed.get("/v1/runs"))["data"]) == 2
    assert (await testbed.call("GET", "/v1/runs", headers={"Accept": "text/csv"}))[0] == 406
