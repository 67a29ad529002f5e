"""API keys: shown once, stored as a hash, bound to projects, revoked."""

import asyncio
from datetime import timedelta

import pytest

from api.auth.authenticate import caller_of_key
from api.errors import HttpApiError
from api.ratelimit.best_plan import CACHE_SECONDS, BestPlan
from api.streaming.registry import StreamRegistry
from crds import api_keys
from crds.limits import Plans
from crds.times import format_second
from tests.unit.api.conftest import NOW
from tests.unit.api.conftest import key as make_key

REVOKED_COMMENT = b": the credential was revoked or has expired\n\n"
ITEM = {"id", "name", "scopes", "projects", "plan", "created_at", "expires_at", "last_used_at", "created_by"}


async def create_key(testbed, bearer=None, **body):
    request_body = {"name": "CI", "scopes": ["read", "run"], **body}
    status, response_body, headers = await testbed.call("POST", "/v1/api-keys", request_body, bearer=bearer)
    assert status == 201, response_body
    assert headers["Location"] == f"/v1/api-keys/{response_body['data']['id']}"
    return response_body["data"]


async def test_key_is_shown_once_and_stored_as_hash(testbed, tmp_path):
    key = await create_key(testbed)
    assert set(key) == ITEM | {"key"}
    assert (await testbed.get("/v1/runs", bearer=key["key"]))["data"] == []
    listed = await testbed.get("/v1/api-keys")
    assert [set(item) for item in listed["data"]] == [ITEM]
    assert set((await testbed.get(f"/v1/api-keys/{key['id']}"))["data"]) == ITEM
    secret = key["key"].rpartition("_")[2].encode()
    assert not any(secret in path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())


async def test_scopes_and_projects_of_key(testbed):
    for name in ("mine", "theirs"):
        await testbed.add_project(name)
    key = await create_key(testbed, scopes=["read"], projects=["mine"])
    assert [item["name"] for item in (await testbed.get("/v1/projects", bearer=key["key"]))["data"]] == [
        "mine"
    ]
    status, body, _ = await testbed.call("POST", "/v1/runs", {"deployment": "mine"}, bearer=key["key"])
    assert (status, body["error"]["details"]["required_scope"]) == (403, "run")
    assert (await testbed.call("GET", "/v1/api-keys", bearer=key["key"]))[0] == 403


async def test_revoked_key_is_rejected(testbed):
    key, other = await create_key(testbed), await create_key(testbed)
    assert (await testbed.call("GET", "/v1/runs", bearer=key["key"]))[0] == 200
    assert (await testbed.call("DELETE", f"/v1/api-keys/{key['id']}"))[0] == 204
    assert (await testbed.call("GET", "/v1/runs", bearer=key["key"]))[0] == 401
    assert (await testbed.call("GET", "/v1/runs", bearer=other["key"]))[0] == 200
    assert (await testbed.call("DELETE", f"/v1/api-keys/{key['id']}"))[0] == 404
    assert [item["id"] for item in (await testbed.get("/v1/api-keys"))["data"]] == [other["id"]]


async def open_stream(testbed, bearer, path="/v1/runs/run_a/events"):
    response = await testbed.client.get(
        path, headers={"Authorization": f"Bearer {bearer}", "Accept": "text/event-stream"}
    )
    assert response.status == 200
    await response.content.readuntil(b"\n\n")
    return response


async def test_revocation_ends_only_streams_of_that_key(testbed):
    await testbed.add_project("crew")
    raw = await testbed.add_run("run-a", "crew")
    await testbed.claim_run(raw)
    key, other = await create_key(testbed), await create_key(testbed)
    ends, stays = await open_stream(testbed, key["key"]), await open_stream(testbed, other["key"])
    assert (await testbed.call("DELETE", f"/v1/api-keys/{key['id']}"))[0] == 204
    # A complete response whose last comment names the reason.
    assert (await asyncio.wait_for(ends.content.read(), 60)).endswith(b"\n\n" + REVOKED_COMMENT)
    await testbed.finish_run(raw, "Succeeded", result={"output": "{}"})
    assert b"run.completed" in await asyncio.wait_for(stays.content.read(), 60)


async def test_revocation_ends_build_log_stream(testbed):
    await testbed.add_project("crew")
    await testbed.add_deployment("dep-a", "crew", "Building")
    key = await create_key(testbed)
    stream = await open_stream(testbed, key["key"], "/v1/deployments/dep_a/logs")
    assert (await testbed.call("DELETE", f"/v1/api-keys/{key['id']}"))[0] == 204
    assert (await asyncio.wait_for(stream.content.read(), 60)).endswith(REVOKED_COMMENT)


async def test_stream_ends_when_key_expires(testbed):
    await testbed.add_project("crew")
    await testbed.claim_run(await testbed.add_run("run-a", "crew"))
    key = await create_key(testbed, expires_at=(NOW + timedelta(seconds=0.2)).isoformat())
    stream = await open_stream(testbed, key["key"])
    assert (await asyncio.wait_for(stream.content.read(), 60)).endswith(REVOKED_COMMENT)
    testbed.clock[0] += timedelta(seconds=1)
    assert (await testbed.call("GET", "/v1/runs/run_a/events", bearer=key["key"]))[0] == 401
    listed = (await testbed.get("/v1/api-keys"))["data"]
    assert [item["id"] for item in listed] == [key["id"]], "an expired key is still listed"


async def test_no_stream_for_key_revoked_meanwhile():
    streams = StreamRegistry()
    streams.revoke("a")
    streams.register("b")
    with pytest.raises(Exception, match="no valid API key"):
        streams.register("a")


async def test_stream_limit_per_key():
    streams, closed = StreamRegistry(limit=9), asyncio.Event()

    async def open_one(key):
        streams.register(key)
        try:
            await closed.wait()
        finally:
            streams.unregister()

    greedy = [asyncio.create_task(open_one("a")) for _ in range(6)]
    await asyncio.sleep(0)
    with pytest.raises(HttpApiError) as refusal:
        await open_one("a")
    assert refusal.value.status == 429
    others = [asyncio.create_task(open_one("b")) for _ in range(3)]
    await asyncio.sleep(0)
    with pytest.raises(HttpApiError) as refusal:
        await open_one("c")
    assert refusal.value.status == 503
    closed.set()
    await asyncio.gather(*greedy, *others)
    await open_one("a")


async def test_last_used_at_is_reported_and_stored(testbed):
    key = await create_key(testbed)
    assert key["last_used_at"] is None
    testbed.clock[0] += timedelta(minutes=5)
    await testbed.get("/v1/runs", bearer=key["key"])
    for _ in range(2):
        shown = (await testbed.get(f"/v1/api-keys/{key['id']}"))["data"]
        assert shown["last_used_at"] == "2026-11-21T10:05:00Z"
        await testbed.store.keys.flush_uses()
    assert (await testbed.store.keys.get(key["id"])).last_used_at == testbed.clock[0]


async def test_bound_admin_manages_only_keys_of_its_projects(testbed):
    bound = testbed.create_key("admin", projects=["mine", "ours"])
    foreign, everything = await create_key(testbed, projects=["mine", "theirs"]), await create_key(testbed)
    own = await create_key(testbed, bearer=bound, projects=["mine"])
    assert [item["id"] for item in (await testbed.get("/v1/api-keys", bearer=bound))["data"]] == [own["id"]]
    for key in (foreign, everything):
        for method in ("GET", "DELETE"):
            status, _, _ = await testbed.call(method, f"/v1/api-keys/{key['id']}", bearer=bound)
            assert status == 404
    for projects in (None, ["theirs"], ["mine", "theirs"]):
        body = {"name": "more", "scopes": ["admin"], "projects": projects}
        status, response, _ = await testbed.call("POST", "/v1/api-keys", body, bearer=bound)
        assert (status, response["error"]["details"]["field"]) == (403, "projects")


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
async def test_invalid_key_body_names_field(testbed, body, field):
    status, response, _ = await testbed.call("POST", "/v1/api-keys", body)
    assert (status, response["error"]["details"]["field"]) == (400, field)


@pytest.mark.parametrize("change", [{"projects": ["a", "a"]}, {"scopes": ["run", "run"]}])
async def test_a_key_with_an_entry_twice_is_refused(testbed, change):
    status, response, _ = await testbed.call(
        "POST", "/v1/api-keys", {"name": "a", "scopes": ["run"], **change}
    )
    (field,) = change
    assert (status, response["error"]["details"]["field"]) == (400, field)
    assert response["error"]["message"] == f"{field} must not contain an entry twice"


async def test_an_unknown_plan_of_a_project_is_refused_with_the_names(testbed):
    await testbed.add_project("crew", {"plan": "bronze"})
    for method, path, body in (
        ("POST", "/v1/projects", {"name": "new"}),
        ("PATCH", "/v1/projects/crew", {}),
        ("POST", "/v1/api-keys", {"name": "a", "scopes": ["read"]}),
    ):
        status, response, _ = await testbed.call(method, path, {**body, "plan": "platinum"})
        assert (status, response["error"]["details"]["field"]) == (400, "plan")
        assert response["error"]["message"] == "plan must be one of enterprise, free, pro"
    # What kubectl has set can stay. Without a cluster behind the API what passes is a 503.
    for plan in ("bronze", "pro"):
        assert (await testbed.call("PATCH", "/v1/projects/crew", {"plan": plan}))[0] == 503


@pytest.fixture
def settings(request, issuer):
    return {"CREWYARD_OIDC_ISSUER": issuer.url, **getattr(request, "param", {})}


@pytest.mark.parametrize("settings", [{"CREWYARD_LIMITS": '{"key_seconds": 3600}'}], indirect=True)
async def test_life_of_keys_is_limited(testbed):
    latest = NOW + timedelta(hours=1)
    assert (await create_key(testbed))["expires_at"] == format_second(latest)
    shorter = format_second(latest - timedelta(minutes=5))
    assert (await create_key(testbed, expires_at=shorter))["expires_at"] == shorter
    body = {"name": "a", "scopes": ["read"], "expires_at": format_second(latest + timedelta(seconds=1))}
    status, response, _ = await testbed.call("POST", "/v1/api-keys", body)
    assert (status, response["error"]["details"]["field"]) == (400, "expires_at")
    assert format_second(latest) in response["error"]["message"]


async def test_bad_keys_have_equal_cost(testbed, issuer, monkeypatch):
    good, revoked = await create_key(testbed), await create_key(testbed)
    expired = await create_key(testbed, expires_at=(NOW + timedelta(seconds=1)).isoformat())
    await testbed.call("DELETE", f"/v1/api-keys/{revoked['id']}")
    await testbed.get("/v1/runs", bearer=good["key"])  # Caches its plan.
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
    counts = [0, 0]

    async def count_lookup(key_id, real=testbed.store.keys.get):
        counts[0] += 1
        return await real(key_id)

    def count_hash(text, real=api_keys.hash_of):
        counts[1] += 1
        return real(text)

    monkeypatch.setattr(testbed.store.keys, "get", count_lookup)
    monkeypatch.setattr(api_keys, "hash_of", count_hash)
    for header in [*(f"Bearer {text}" for text in texts), "Basic x", "Bearer " + "x" * 8001, ""]:
        counts[:] = [0, 0]
        headers = {"Authorization": header} if header else {}
        status, _, _ = await testbed.call("GET", "/v1/runs", bearer="", headers=headers)
        # The good key is cached since the first lookup.
        expected = (200, [0, 1]) if header.endswith(good["key"]) else (401, [1, 1])
        assert (status, counts) == expected, header[:60]


async def test_rate_limit_by_best_plan_of_projects(testbed):
    await testbed.add_project("small")
    await testbed.add_project("large", {"plan": "pro"})
    for projects, limit in ((["small"], 60), (["small", "large"], 300), (None, 300), (["absent"], 60)):
        key = await create_key(testbed, projects=projects)
        _, _, headers = await testbed.call("GET", "/v1/projects", bearer=key["key"])
        assert headers["X-RateLimit-Limit"] == str(limit), projects
    key = await create_key(testbed, projects=["small"], plan="enterprise")
    _, _, headers = await testbed.call("GET", "/v1/projects", bearer=key["key"])
    assert headers["X-RateLimit-Limit"] == "6000"


async def test_best_plan_is_cached():
    lookups = []

    async def plans_of(projects):
        lookups.append(projects)
        return frozenset({"pro", "unknown"})

    best, record = BestPlan(plans_of, Plans()), make_key("read")[1]
    for now in (0.0, CACHE_SECONDS - 1, CACHE_SECONDS, CACHE_SECONDS + 1):
        assert await best.of(caller_of_key(record), now) == "pro"
    assert len(lookups) == 2


async def test_key_ends_with_its_project(testbed):
    uid = await testbed.add_project("research")
    await testbed.add_project("other")
    one = await create_key(testbed, projects=["research"])
    both = await create_key(testbed, projects=["research", "other"])
    await testbed.store.projects.remove("research", uid, NOW)
    await testbed.add_project("research")
    assert (await testbed.call("GET", "/v1/projects/research", bearer=one["key"]))[0] == 401
    assert (await testbed.call("GET", "/v1/projects/research", bearer=both["key"]))[0] == 404
    assert (await testbed.call("GET", "/v1/projects/other", bearer=both["key"]))[0] == 200
    listed = {item["id"]: item["projects"] for item in (await testbed.get("/v1/api-keys"))["data"]}
    assert listed == {both["id"]: ["other"]}
