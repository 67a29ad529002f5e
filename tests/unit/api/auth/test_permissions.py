"""Permissions and states of a key; `test_matrix.py` covers every single operation."""

import json
from datetime import timedelta

import pytest

from api.auth.api_keys import Keyring, StoredKey, parse_fixed
from api.auth.scopes import SCOPES
from crds import api_keys
from tests.unit.api.conftest import NOW, key


@pytest.fixture
async def bound_key(testbed):
    """Two projects with all kinds of objects, and a key for one of them."""
    for name in ("mine", "theirs"):
        await testbed.add_project(name, activeDeployment=f"dep-{name}")
        await testbed.add_deployment(f"dep-{name}", name)
        await testbed.add_run(f"run-{name}", name, f"dep-{name}")
    return testbed.create_key("read", "run", "deploy", projects=["mine"])


async def test_bound_key_sees_only_its_projects(testbed, bound_key):
    for path, expected in (("/v1/runs", ["run_mine"]), ("/v1/projects", ["mine"])):
        found = await testbed.get(path, bearer=bound_key)
        assert [item.get("id") or item["name"] for item in found["data"]] == expected
        assert found["pagination"]["total"] == 1
    assert (await testbed.get("/v1/runs?deployment=dep_theirs", bearer=bound_key))["data"] == []
    for path in (
        "/v1/projects/theirs",
        "/v1/projects/theirs/env",
        "/v1/deployments/dep_theirs",
        "/v1/deployments/dep_theirs/logs",
        "/v1/runs/run_theirs",
        "/v1/runs/run_theirs/events",
        "/v1/runs/run_theirs/logs",
        "/v1/runs/run_theirs/artifacts",
        "/v1/runs/run_theirs/artifacts/x",
    ):
        foreign = await testbed.call("GET", path, bearer=bound_key)
        absent = await testbed.call("GET", path.replace("theirs", "absent"), bearer=bound_key)
        assert (foreign[0], absent[0]) == (404, 404), path
        refusal = foreign[1]["error"]["message"].replace("theirs", "absent")
        assert refusal == absent[1]["error"]["message"]


@pytest.mark.parametrize("name", ["theirs", "absent"])
async def test_foreign_project_is_forbidden_existing_or_not(testbed, bound_key, name):
    calls = [
        ("GET", f"/v1/runs?project={name}", None, "project"),
        ("GET", f"/v1/deployments?project={name}", None, "project"),
        ("POST", "/v1/projects", {"name": name}, "name"),
        ("POST", "/v1/uploads", {"project": name, "size": 1}, "project"),
        ("POST", "/v1/deployments", {"project": name, "build_context_url": "x"}, "project"),
        ("POST", "/v1/runs", {"deployment": name}, "deployment"),
    ]
    for method, path, body, field in calls:
        status, answer, _ = await testbed.call(method, path, body, bearer=bound_key)
        assert (status, answer["error"]["details"]["field"]) == (403, field), path


async def test_run_of_a_foreign_deployment_is_not_found(testbed, bound_key):
    for identifier in ("dep_theirs", "dep_absent"):
        status, _, _ = await testbed.call("POST", "/v1/runs", {"deployment": identifier}, bearer=bound_key)
        assert status == 404


async def test_run_scope_cannot_change_the_entrypoint(testbed, bound_key):
    # `os:environ.copy` would return the values of all variables.
    body = {"deployment": "mine", "entrypoint": "os:environ.copy"}
    runner = testbed.create_key("run", projects=["mine"])
    for deployment in ("mine", "dep_mine"):
        status, answer, _ = await testbed.call(
            "POST", "/v1/runs", {**body, "deployment": deployment}, bearer=runner
        )
        assert (status, answer["error"]["details"]) == (
            403,
            {"field": "entrypoint", "required_scope": "deploy"},
        )
    assert (await testbed.get("/v1/runs"))["data"][0]["id"] == "run_theirs"
    # 503 without an apiserver: the permission check has passed.
    for bearer, sent in ((bound_key, body), (testbed.admin, body), (runner, {"deployment": "mine"})):
        assert (await testbed.call("POST", "/v1/runs", sent, bearer=bearer))[0] == 503


@pytest.mark.parametrize(
    ("entrypoint", "status"),
    [
        ("writer", 503),  # 503 without an apiserver: the permission check has passed
        ("editor", 400),
        ("main.py", 403),
        ("crew.jsonc", 403),
        ("os:environ.copy", 403),
        ("a/../b.py", 400),
        ("a b", 400),
        ("../b.py", 400),
    ],
)
async def test_run_scope_chooses_an_entrypoint_by_name_only(testbed, entrypoint, status):
    plan = {"entrypoint": "main:kickoff", "entrypoints": {"writer": "main:write"}}
    await testbed.add_project("mine", activeDeployment="dep-mine")
    await testbed.add_deployment("dep-mine", "mine", plan=plan)
    body = {"deployment": "mine", "entrypoint": entrypoint}
    answered, answer, _ = await testbed.call("POST", "/v1/runs", body, bearer=testbed.create_key("run"))
    assert answered == status
    if status != 503:
        assert answer["error"]["details"]["field"] == "entrypoint"
    if entrypoint == "editor":
        assert answer["error"]["message"] == "deployment dep_mine has no entrypoint 'editor'; it has writer"
    shown = (await testbed.get("/v1/deployments/dep_mine"))["data"]
    assert shown["entrypoints"] == ["writer"]


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"plan": "pro"}, "plan"),
        (
            {"source": {"git": {"url": "https://x.example/y", "secret_ref": {"name": "z"}}}},
            "source.git.secret_ref",
        ),
        ({"oidc": [{"repository": "a/b", "scopes": ["run"]}]}, "oidc"),
        ({"pod": {"image_pull_secrets": [{"name": "z"}]}}, "pod.image_pull_secrets"),
    ],
)
async def test_fields_that_grant_permissions_need_admin(testbed, body, field):
    status, answer, _ = await testbed.call(
        "POST", "/v1/projects", {"name": "a", **body}, bearer=testbed.create_key("deploy")
    )
    assert (status, answer["error"]["details"]["field"]) == (403, field)


async def test_expired_or_revoked_key_is_rejected(testbed):
    bearer = testbed.create_key("read", expires_at=NOW + timedelta(minutes=1))
    assert (await testbed.call("GET", "/v1/runs", bearer=bearer))[0] == 200
    testbed.clock[0] += timedelta(minutes=1)
    assert (await testbed.call("GET", "/v1/runs", bearer=bearer))[0] == 401
    assert (await testbed.call("GET", "/v1/runs", bearer=testbed.create_key("read", revoked=True)))[0] == 401


@pytest.mark.usefixtures("stopped_windows")
async def test_keys_have_separate_rate_limits(testbed):
    first, second = testbed.create_key("read", plan="free"), testbed.create_key("read", plan="free")
    left = []
    for _ in range(61):
        status, body, headers = await testbed.call("GET", "/v1/projects", bearer=first)
        left.append(int(headers["X-RateLimit-Remaining"]))
    assert left == [*range(59, -1, -1), 0]
    assert headers["X-RateLimit-Limit"] == "60"
    assert (status, body["error"]["code"]) == (429, "rate_limited")
    assert 1 <= int(headers["Retry-After"]) <= 60
    assert (await testbed.call("GET", "/v1/projects", bearer=second))[0] == 200
    assert (await testbed.call("GET", "/healthz", bearer=""))[0] == 200


@pytest.mark.usefixtures("stopped_windows")
async def test_guessing_is_rate_limited_by_address(testbed):
    codes = [(await testbed.call("GET", "/v1/runs", bearer=f"crw_{n}"))[0] for n in range(62)]
    assert codes == [401] * 60 + [429] * 2


@pytest.mark.parametrize(
    "kind", ["good", "unknown", "other secret", "revoked", "expired", "malformed", "empty"]
)
async def test_every_key_check_costs_one_lookup_and_one_hash(kind, monkeypatch):
    text, record = key("read", revoked=kind == "revoked", expires_at=NOW if kind == "expired" else None)
    presented = {
        "unknown": api_keys.generate().text,
        "malformed": text[:-1],
        "empty": "",
        "other secret": text,
    }.get(kind, text)
    if kind == "other secret":
        record = key("read")[1].__class__(**{**record.__dict__, "hash": api_keys.hash_of("another")})
    counted = {"look": 0, "hash": 0}

    async def look_up(key_id):
        counted["look"] += 1
        return record if key_id == record.key_id else None

    def hashed(whole, real=api_keys.hash_of):
        counted["hash"] += 1
        return real(whole)

    monkeypatch.setattr(api_keys, "hash_of", hashed)
    found = await Keyring({}, look_up).find(presented, NOW)
    assert (found is not None) is (kind == "good")
    assert counted == {"look": 1, "hash": 1}
    if kind not in ("good", "revoked", "expired"):
        counted.update(look=0, hash=0)
        assert await Keyring({record.key_id: record}, look_up).find(presented, NOW) is None
        assert counted == {"look": 1, "hash": 1}


async def test_valid_key_is_looked_up_once_per_generation():
    text, record = key("read", expires_at=NOW)
    rows, generation, looked = {record.key_id: record}, [7], []

    async def look_up(key_id):
        looked.append(key_id)
        return rows.get(key_id)

    ring = Keyring({}, look_up, lambda: generation[0])
    before = NOW - timedelta(seconds=1)
    assert [await ring.find(text, before) for _ in range(3)] == [record] * 3
    second, of_second = key("run")
    rows[of_second.key_id] = of_second
    assert [await ring.find(each, before) for each in (second, text, second)] == [
        of_second,
        record,
        of_second,
    ]
    assert looked == [record.key_id, of_second.key_id]
    looked.pop()
    other = api_keys.generate().text
    assert [await ring.find(other, before) for _ in range(2)] == [None] * 2
    assert [await ring.find(text, NOW) for _ in range(2)] == [None] * 2, "it has expired"
    assert len(looked) == 5, "what is not good is looked up each time"
    rows.clear()
    generation[0] = None
    assert await ring.find(text, before) is None, "something is being changed"
    generation[0] = 8
    assert await ring.find(text, before) is None
    rows[record.key_id] = record
    assert await ring.find(text, before) == record


async def test_key_revoked_during_lookup_is_not_cached():
    text, record = key("read")
    rows, generation = {record.key_id: record}, [1]

    async def look_up(key_id):
        found = rows.pop(key_id, None)
        generation[0] += 1
        return found

    ring = Keyring({}, look_up, lambda: generation[0])
    assert await ring.find(text, NOW) == record
    assert await ring.find(text, NOW) is None


def test_fixed_keys_are_read():
    least = {"id": "a", "hash": "h", "scopes": list(SCOPES)}
    more = {"id": "b", "hash": "i", "scopes": ["run"], "name": "CI", "projects": ["demo"], "plan": "pro"}
    assert parse_fixed(json.dumps([least, more])) == {
        "a": StoredKey("a", "h", "", frozenset(SCOPES), None, None),
        "b": StoredKey("b", "i", "CI", frozenset({"run"}), frozenset({"demo"}), "pro"),
    }
    assert parse_fixed(" ") == {}


KEY = {"id": "a", "hash": "swordfish", "scopes": ["run"]}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "is not JSON"),
        ("{}", "must be a JSON list"),
        ("[1]", "entry 0 needs id, hash and scopes"),
        (json.dumps([KEY, {**KEY, "id": "b", "scopes": []}]), "entry 1"),
        (json.dumps([KEY, {**KEY, "id": "b", "scopes": ["root"]}]), r"entry 1 .*\(some of read, run, "),
        *((json.dumps([{one: KEY[one] for one in KEY if one != name}]), "entry 0") for name in KEY),
    ],
)
def test_invalid_fixed_keys_are_rejected_without_showing_them(text, words):
    with pytest.raises(ValueError, match=f"CREWYARD_ADMIN_KEYS.*{words}") as caught:
        parse_fixed(text)
    assert "swordfish" not in str(caught.value)
