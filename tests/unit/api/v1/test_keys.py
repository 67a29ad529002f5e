"""API keys: shown once, stored as a hash, bound, ended."""

import asyncio
from datetime import timedelta

import pytest

from api.auth.authenticate import caller_of_key
from api.errors import ApiError
from api.ratelimit.plan import CACHE_SECONDS, BestPlan
from api.streaming.registry import StreamRegistry
from crds import api_keys
from crds.limits import Plans
from tests.unit.api.conftest import NOW
from tests.unit.api.conftest import key as drawn_key

NO_LONGER = b": the credential was revoked or has expired\n\n"
ITEM = {"id", "name", "scopes", "projects", "plan", "created_at", "expires_at", "last_used_at"}


async def made(testbed, bearer=None, **body):
    given = {"name": "CI", "scopes": ["read", "run"], **body}
    status, found, headers = await testbed.call("POST", "/v1/api-keys", given, bearer=bearer)
    assert status == 201, found
    assert headers["Location"] == f"/v1/api-keys/{found['data']['id']}"
    return found["data"]


async def test_a_key_is_shown_once_and_only_its_hash_is_stored(testbed, tmp_path):
    key = await made(testbed)
    assert set(key) == ITEM | {"key"}
    assert (await testbed.get("/v1/runs", bearer=key["key"]))["data"] == []
    listed = await testbed.get("/v1/api-keys")
    assert [set(item) for item in listed["data"]] == [ITEM]
    assert set((await testbed.get(f"/v1/api-keys/{key['id']}"))["data"]) == ITEM
    secret = key["key"].rpartition("_")[2].encode()
    assert not any(secret in path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())


async def test_a_key_may_what_its_scopes_and_projects_say(testbed):
    for name in ("mine", "theirs"):
        await testbed.add_project(name)
    key = await made(testbed, scopes=["read"], projects=["mine"])
    assert [item["name"] for item in (await testbed.get("/v1/projects", bearer=key["key"]))["data"]] == [
        "mine"
    ]
    status, body, _ = await testbed.call("POST", "/v1/runs", {"deployment": "mine"}, bearer=key["key"])
    assert (status, body["error"]["details"]["required_scope"]) == (403, "run")
    assert (await testbed.call("GET", "/v1/api-keys", bearer=key["key"]))[0] == 403


async def test_a_revoked_key_holds_no_longer_from_the_next_request_on(testbed):
    key, other = await made(testbed), await made(testbed)
    assert (await testbed.call("GET", "/v1/runs", bearer=key["key"]))[0] == 200
    assert (await testbed.call("DELETE", f"/v1/api-keys/{key['id']}"))[0] == 204
    assert (await testbed.call("GET", "/v1/runs", bearer=key["key"]))[0] == 401
    assert (await testbed.call("GET", "/v1/runs", bearer=other["key"]))[0] == 200
    assert (await testbed.call("DELETE", f"/v1/api-keys/{key['id']}"))[0] == 404
    assert [item["id"] for item in (await testbed.get("/v1/api-keys"))["data"]] == [other["id"]]


async def opened(testbed, bearer, path="/v1/runs/run_a/events"):
    answer = await testbed.client.get(
        path, headers={"Authorization": f"Bearer {bearer}", "Accept": "text/event-stream"}
    )
    assert answer.status == 200
    await answer.content.readuntil(b"\n\n")
    return answer


async def test_revocation_ends_the_streams_of_that_key_and_of_no_other(testbed):
    await testbed.add_project("crew")
    raw = await testbed.add_run("run-a", "crew")
    await testbed.claim_run(raw)
    key, other = await made(testbed), await made(testbed)
    ends, goes_on = await opened(testbed, key["key"]), await opened(testbed, other["key"])
    assert (await testbed.call("DELETE", f"/v1/api-keys/{key['id']}"))[0] == 204
    # A whole answer, whose last words say why: it was not cut.
    assert (await asyncio.wait_for(ends.content.read(), 60)).endswith(b"\n\n" + NO_LONGER)
    await testbed.finish_run(raw, "Succeeded", result={"output": "{}"})
    assert b"run.completed" in await asyncio.wait_for(goes_on.content.read(), 60)


async def test_revocation_ends_a_build_log_that_is_followed(testbed):
    await testbed.add_project("crew")
    await testbed.add_deployment("dep-a", "crew", "Building")
    key = await made(testbed)
    stream = await opened(testbed, key["key"], "/v1/deployments/dep_a/logs")
    assert (await testbed.call("DELETE", f"/v1/api-keys/{key['id']}"))[0] == 204
    assert (await asyncio.wait_for(stream.content.read(), 60)).endswith(NO_LONGER)


async def test_a_stream_ends_with_its_key(testbed):
    await testbed.add_project("crew")
    await testbed.claim_run(await testbed.add_run("run-a", "crew"))
    key = await made(testbed, expires_at=(NOW + timedelta(seconds=0.2)).isoformat())
    stream = await opened(testbed, key["key"])
    assert (await asyncio.wait_for(stream.content.read(), 60)).endswith(NO_LONGER)
    testbed.clock[0] += timedelta(seconds=1)
    assert (await testbed.call("GET", "/v1/runs/run_a/events", bearer=key["key"]))[0] == 401
    listed = (await testbed.get("/v1/api-keys"))["data"]
    assert [item["id"] for item in listed] == [key["id"]], "an expired key is still listed"


async def test_no_stream_opens_for_a_key_that_was_revoked_while_it_was_asked_for():
    streams = StreamRegistry()
    streams.revoke("a")
    streams.register("b")
    with pytest.raises(Exception, match="no valid API key"):
        streams.register("a")


async def test_one_key_cannot_have_all_streams():
    streams, gate = StreamRegistry(limit=9), asyncio.Event()

    async def open_one(key):
        streams.register(key)
        try:
            await gate.wait()
        finally:
            streams.unregister()

    greedy = [asyncio.create_task(open_one("a")) for _ in range(6)]
    await asyncio.sleep(0)
    with pytest.raises(ApiError) as refusal:
        await open_one("a")
    assert refusal.value.status == 429
    others = [asyncio.create_task(open_one("b")) for _ in range(3)]
    await asyncio.sleep(0)
    with pytest.raises(ApiError) as refusal:
        await open_one("c")
    assert refusal.value.status == 503
    gate.set()
    await asyncio.gather(*greedy, *others)
    await open_one("a")


async def test_the_last_use_is_told_and_kept(testbed):
    key = await made(testbed)
    assert key["last_used_at"] is None
    testbed.clock[0] += timedelta(minutes=5)
    await testbed.get("/v1/runs", bearer=key["key"])
    for _ in range(2):
        shown = (await testbed.get(f"/v1/api-keys/{key['id']}"))["data"]
        assert shown["last_used_at"] == "2026-11-21T10:05:00Z"
        await testbed.store.keys.flush_uses()
    assert (await testbed.store.keys.get(key["id"])).last_used_at == testbed.clock[0]


async def test_a_bound_admin_makes_and_sees_keys_of_its_projects_only(testbed):
    bound = testbed.create_key("admin", projects=["mine", "ours"])
    foreign, everything = await made(testbed, projects=["mine", "theirs"]), await made(testbed)
    own = await made(testbed, bearer=bound, projects=["mine"])
    assert [item["id"] for item in (await testbed.get("/v1/api-keys", bearer=bound))["data"]] == [own["id"]]
    for key in (foreign, everything):
        for method in ("GET", "DELETE"):
            status, _, _ = await testbed.call(method, f"/v1/api-keys/{key['id']}", bearer=bound)
            assert status == 404
    for projects in (None, ["theirs"], ["mine", "theirs"]):
        body = {"name": "more", "scopes": ["admin"], "projects": projects}
        status, answer, _ = await testbed.call("POST", "/v1/api-keys", body, bearer=bound)
        assert (status, answer["error"]["details"]["field"]) == (403, "projects")


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"scopes": ["read"]}, "name"),
        ({"name": "a"}, "scopes"),
        ({"name": "a", "scopes": []}, "scopes"),
        ({"name": "a", "scopes": ["root"]}, "scopes.0"),
        ({"name": "a", "scopes": ["read"], "projects": []}, "projects"),
        ({"name": "a", "scopes": ["read"], "projects": ["A"]}, "projects.0"),
        ({"name": "a", "scopes": ["read"], "plan": "gold"}, "plan"),
        ({"name": "a", "scopes": ["read"], "expires_at": "tomorrow"}, "expires_at"),
        ({"name": "a", "scopes": ["read"], "expires_at": "2026-02-30T00:00:00Z"}, "expires_at"),
        ({"name": "a", "scopes": ["read"], "expires_at": "9999-12-31T23:59:59-23:00"}, "expires_at"),
        ({"name": "a", "scopes": ["read"], "expires_at": "2026-11-21T10:00:00Z"}, "expires_at"),
    ],
)
async def test_a_wrong_key_is_named_by_its_field(testbed, body, field):
    status, answer, _ = await testbed.call("POST", "/v1/api-keys", body)
    assert (status, answer["error"]["details"]["field"]) == (400, field)


@pytest.fixture
def settings(issuer):
    return {"CREWYARD_OIDC_ISSUER": issuer.url}


async def test_every_bad_key_costs_the_same_and_a_good_one_no_more(testbed, issuer, monkeypatch):
    good, revoked = await made(testbed), await made(testbed)
    expired = await made(testbed, expires_at=(NOW + timedelta(seconds=1)).isoformat())
    await testbed.call("DELETE", f"/v1/api-keys/{revoked['id']}")
    await testbed.get("/v1/runs", bearer=good["key"])  # Its plan is known from now on.
    testbed.clock[0] += timedelta(seconds=2)
    texts = [
        good["key"],
        revoked["key"],
        expired["key"],
        api_keys.generate().text,
        good["key"][:-1],
        "x",
        "crw_",
    ]
    texts += [
        issuer.token(NOW),
        issuer.token(NOW)[:-4],
        issuer.token(NOW, aud="other", iss="other"),
        "x" * 8000,
    ]
    counted = [0, 0]

    async def look(key_id, real=testbed.store.keys.get):
        counted[0] += 1
        return await real(key_id)

    def hashed(text, real=api_keys.hash_of):
        counted[1] += 1
        return real(text)

    monkeypatch.setattr(testbed.store.keys, "get", look)
    monkeypatch.setattr(api_keys, "hash_of", hashed)
    for header in [*(f"Bearer {text}" for text in texts), "Basic x", "Bearer " + "x" * 8001, ""]:
        counted[:] = [0, 0]
        headers = {"Authorization": header} if header else {}
        status, _, _ = await testbed.call("GET", "/v1/runs", bearer="", headers=headers)
        # A good one was looked up before, and nothing has changed since.
        expected = (200, [0, 1]) if header.endswith(good["key"]) else (401, [1, 1])
        assert (status, counted) == expected, header[:60]


async def test_requests_count_by_the_best_plan_of_a_keys_projects(testbed):
    await testbed.add_project("small")
    await testbed.add_project("large", {"plan": "pro"})
    for projects, limit in ((["small"], 60), (["small", "large"], 300), (None, 300), (["absent"], 60)):
        key = await made(testbed, projects=projects)
        _, _, headers = await testbed.call("GET", "/v1/projects", bearer=key["key"])
        assert headers["X-RateLimit-Limit"] == str(limit), projects
    key = await made(testbed, projects=["small"], plan="enterprise")
    _, _, headers = await testbed.call("GET", "/v1/projects", bearer=key["key"])
    assert headers["X-RateLimit-Limit"] == "6000"


async def test_the_best_plan_is_looked_up_at_most_every_ten_seconds():
    asked = []

    async def plans_of(projects):
        asked.append(projects)
        return frozenset({"pro", "unknown"})

    best, record = BestPlan(plans_of, Plans()), drawn_key("read")[1]
    for now in (0.0, CACHE_SECONDS - 1, CACHE_SECONDS, CACHE_SECONDS + 1):
        assert await best.of(caller_of_key(record), now) == "pro"
    assert len(asked) == 2
