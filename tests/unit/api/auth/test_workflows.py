"""Workflow tokens, which projects map to scopes."""

import asyncio
import json
from datetime import timedelta

import jwt
import pytest
from structlog.testing import capture_logs

from api.auth import workflows
from api.auth.jwks import IssuerKeys
from api.auth.oidc import WorkflowTokens, is_current, verify
from api.auth.principal import Caller, ProvenCommit
from api.auth.scopes import Grants
from api.auth.unverified import parse_unverified
from api.services import SERVICES
from api.v1.idempotency import parse_header
from crds.api_keys import hash_of
from tests.unit.api.auth.issuer import AUDIENCE, REPOSITORY, ec_key, rsa_key
from tests.unit.api.conftest import NOW


@pytest.fixture
def settings(issuer):
    return {"CREWYARD_OIDC_ISSUER": issuer.url}


def entry(*scopes, repository=REPOSITORY, **more):
    return {"repository": repository, "scopes": list(scopes), **more}


async def status(testbed, bearer, path="/v1/runs", method="GET", body=None):
    testbed.reset_rate_limits()
    return (await testbed.call(method, path, body, bearer=bearer))[0]


async def test_workflow_scopes_follow_the_entries_of_each_project(testbed, issuer):
    main = {"ref": "refs/heads/main"}
    await testbed.add_project("tides", {"oidc": [entry("run"), entry("deploy", **main)]})
    await testbed.add_project("dunes", {"oidc": [entry("run", repository="OCTO/Tides")]})
    await testbed.add_project("moons", {"oidc": [entry("run", repository="octo/other")]})
    token = issuer.token(NOW)
    listed = await testbed.get("/v1/projects", bearer=token)
    assert [item["name"] for item in listed["data"]] == ["dunes", "tides"]
    upload = {"size": 5}
    for project, expected in (("tides", 201), ("dunes", 403), ("moons", 403)):
        assert await status(testbed, token, "/v1/uploads", "POST", {"project": project, **upload}) == expected
    _, answer, _ = await testbed.call("POST", "/v1/uploads", {"project": "dunes", **upload}, bearer=token)
    assert answer["error"]["details"] == {"required_scope": "preview", "scopes": ["read", "run"]}
    assert await status(testbed, token, "/v1/projects/moons") == 404
    assert await status(testbed, token, "/v1/projects/dunes/env/A", "PUT", {"value": "x"}) == 403
    branch = issuer.token(NOW, ref="refs/heads/topic")
    assert await status(testbed, branch, "/v1/uploads", "POST", {"project": "tides", **upload}) == 403
    assert await status(testbed, token, "/v1/api-keys") == 403, "no workflow is admin"


@pytest.mark.parametrize(
    ("expected", "ref", "matches"),
    [
        (None, "refs/heads/topic", True),
        (None, "refs/tags/v1", True),
        (None, None, True),
        (None, "refs/pull/7/merge", False),
        ("refs/pull/*", "refs/pull/7/merge", True),
        ("refs/pull/7/merge", "refs/pull/7/merge", True),
        ("refs/pull/*", "refs/pullers", False),
        ("refs/heads/*", "refs/heads/a/b", True),
        ("refs/heads/*", "refs/heads", False),
        ("refs/heads/*", "refs/tags/v1", False),
        ("refs/heads/*", None, False),
        ("refs/heads/main", "refs/heads/main2", False),
    ],
)
def test_entry_matches_refs(expected, ref, matches):
    entry = workflows.OidcEntry("tides", REPOSITORY, expected, None, frozenset({"deploy"}))
    assert entry.matches(workflows.Workflow(REPOSITORY, ref, None)) is matches


async def test_cached_response_needs_current_permissions(testbed, issuer, monkeypatch):
    monkeypatch.setattr("api.auth.oidc.MIN_RELOAD_SECONDS", 0.0)
    await testbed.add_project("tides", {"oidc": [entry("run")]}, activeDeployment="dep-a")
    await testbed.add_deployment("dep-a", "tides")
    await testbed.add_run("run-a", "tides")
    token, body = issuer.token(NOW), {"deployment": "tides"}
    owner = f"workflow:{REPOSITORY}:refs/heads/main"
    await testbed.store.idempotency.put(parse_header("once", owner, "/v1/runs", body), "run-a", NOW)
    again = {"Idempotency-Key": "once"}
    code, answer, _ = await testbed.call("POST", "/v1/runs", body, bearer=token, headers=again)
    assert (code, answer["data"]["id"]) == (201, "run_a")
    await testbed.update_spec("tides", oidc=[entry("read")])
    code, _, _ = await testbed.call("POST", "/v1/runs", body, bearer=token, headers=again)
    assert code == 403


async def test_changed_entries_take_effect_after_reload(testbed, issuer, monkeypatch):
    uid = await testbed.add_project("tides", {"oidc": [entry("run")]})
    token = issuer.token(NOW)
    assert await status(testbed, token) == 200
    monkeypatch.setattr("api.auth.oidc.MIN_RELOAD_SECONDS", 0.0)
    await testbed.store.projects.remove("tides", uid, NOW)
    assert await status(testbed, token) == 401


@pytest.mark.parametrize(
    ("fields", "claims", "allowed"),
    [
        ({}, {}, True),
        ({}, {"event_name": "pull_request_target"}, False),
        ({}, {"event_name": "workflow_run"}, False),
        ({"event": "workflow_run"}, {"event_name": "workflow_run"}, True),
        ({"event": "workflow_run"}, {"event_name": "push"}, False),
        ({"event": "push"}, {"event_name": None}, False),
        ({"repositoryId": "42"}, {"repository_id": "42"}, True),
        ({"repositoryId": "42"}, {"repository_id": "43"}, False),
        ({"repositoryId": "42"}, {}, False),
        (
            {"workflow": "ci.yml"},
            {"workflow_ref": f"{REPOSITORY}/.github/workflows/ci.yml@refs/heads/x"},
            True,
        ),
        ({"workflow": "ci.yml"}, {"workflow_ref": "OCTO/tides/.github/workflows/ci.yml@refs/heads/x"}, True),
        (
            {"workflow": "ci.yml"},
            {"workflow_ref": f"{REPOSITORY}/.github/workflows/x.yml@refs/heads/x"},
            False,
        ),
        ({"workflow": "ci.yml"}, {"workflow_ref": "octo/other/.github/workflows/ci.yml@refs/heads/x"}, False),
        ({"workflow": "ci.yml"}, {"workflow_ref": 7}, False),
        ({"workflow": "ci.yml"}, {}, False),
    ],
)
async def test_entry_names_event_repository_and_workflow(testbed, issuer, fields, claims, allowed):
    await testbed.add_project("tides", {"oidc": [entry("run", **fields)]})
    assert await status(testbed, issuer.token(NOW, **claims)) == (200 if allowed else 401)


async def test_first_use_pins_the_repository(testbed, issuer, monkeypatch):
    monkeypatch.setattr("api.auth.oidc.MIN_RELOAD_SECONDS", 0.0)
    await testbed.add_project("tides", {"oidc": [entry("run")]})
    unnumbered, ours, others = (issuer.token(NOW, repository_id=number) for number in (None, "42", "43"))
    assert await status(testbed, unnumbered) == 200, "an issuer without ids"
    assert [await status(testbed, token) for token in (ours, others, unnumbered, ours)] == [
        200,
        401,
        401,
        200,
    ]
    renamed = issuer.token(NOW, repository="Octo/TIDES", repository_id="43")
    with capture_logs() as logged:
        assert await status(testbed, renamed) == 401
    assert [line for line in logged if line["event"] == "workflow_repository_changed"] == [
        {
            "event": "workflow_repository_changed",
            "project": "tides",
            "repository": "Octo/TIDES",
            "pinned": "42",
            "given": "43",
            "log_level": "warning",
        }
    ]
    # Another replica, which reads the pin from the index.
    assert await testbed.store.workflows.pin("other", REPOSITORY, "1", NOW) == "1"
    row = await testbed.store.projects.get("tides")
    assert await testbed.store.workflows.pins() == {(row.uid, REPOSITORY): "42", ("other", REPOSITORY): "1"}
    assert await testbed.store.workflows.pin(row.uid, REPOSITORY, "43", NOW) == "42"
    await testbed.update_spec("tides", oidc=[entry("run", repositoryId="43")])
    assert [await status(testbed, token) for token in (ours, others)] == [401, 200], (
        "an admin names the new one"
    )
    await testbed.store.projects.remove("tides", row.uid, NOW)
    assert await testbed.store.workflows.pins() == {("other", REPOSITORY): "1"}


async def test_preview_scope_deploys_previews_only(testbed, issuer):
    await testbed.add_project("tides", {"oidc": [entry("preview", ref="refs/pull/*")]})
    token = issuer.token(NOW, ref="refs/pull/7/merge")
    assert await status(testbed, token, "/v1/uploads", "POST", {"project": "tides", "size": 5}) == 201
    body = {"project": "tides", "build_context_url": "https://elsewhere.example/x.tar.gz"}
    code, answer, _ = await testbed.call("POST", "/v1/deployments", body, bearer=token)
    assert (code, answer["error"]["details"]["required_scope"]) == (403, "deploy")
    code, answer, _ = await testbed.call("POST", "/v1/deployments", {**body, "preview": {}}, bearer=token)
    assert (code, answer["error"]["details"].get("field")) == (400, "build_context_url"), "past the scope"
    for method, path, more in (
        ("PUT", "/v1/projects/tides/env/A", {"value": "x"}),
        ("PATCH", "/v1/projects/tides", {"run": {"timeout": "1m"}}),
        ("POST", "/v1/runs", {"deployment": "tides"}),
    ):
        assert await status(testbed, token, path, method, more) == 403, path


BAD = {
    "expired": lambda i: i.token(NOW - timedelta(seconds=331)),
    "not started": lambda i: i.token(NOW, nbf=int(NOW.timestamp()) + 31),
    "issued later": lambda i: i.token(NOW, iat=int(NOW.timestamp()) + 31),
    "endless": lambda i: i.token(NOW, exp=int(NOW.timestamp()) + 86_401),
    "without exp": lambda i: i.token(NOW, exp=None),
    "without iat": lambda i: i.token(NOW, iat=None),
    "with a text for exp": lambda i: i.token(NOW, exp="9999999999"),
    "other issuer": lambda i: i.token(NOW, iss="https://other.example"),
    "issuer with a slash": lambda i: i.token(NOW, iss=f"{i.url}/"),
    "other audience": lambda i: i.token(NOW, aud="http://crewyard.example/"),
    "several audiences": lambda i: i.token(NOW, aud=[AUDIENCE, "other"]),
    "other audience in a list": lambda i: i.token(NOW, aud=["http://crewyard.example/"]),
    "no audience in a list": lambda i: i.token(NOW, aud=[]),
    "without audience": lambda i: i.token(NOW, aud=None),
    "other repository": lambda i: i.token(NOW, repository="octo/others"),
    "no repository": lambda i: i.token(NOW, repository=None),
    "odd repository": lambda i: i.token(NOW, repository="octo/tides\n"),
    "odd ref": lambda i: i.token(NOW, ref=["refs/heads/main"]),
    "unknown key": lambda i: i.token(NOW, kid="three"),
    "no key": lambda i: i.token(NOW, kid=""),
    "other key": lambda i: i.token(NOW, key=rsa_key(2048, 1)),
    "key of another algorithm": lambda i: i.token(NOW, key=ec_key(), algorithm="ES256"),
    "other algorithm": lambda i: i.token(NOW, algorithm="RS512"),
    "public key as secret": lambda i: jwt.encode(
        i.claims(NOW), "x" * 64, "HS256", headers={"kid": "one"}
    ),
    "unsigned": lambda i: jwt.encode(i.claims(NOW), None, "none", headers={"kid": "one"}),
    "cut": lambda i: i.token(NOW)[:-4],
    "changed": lambda i: _changed(i.token(NOW)),
    "critical": lambda i: jwt.encode(
        i.claims(NOW), rsa_key(), "RS256", headers={"kid": "one", "crit": ["x"], "x": 1}
    ),
}  # fmt: skip


def _changed(token):
    head, claims, signature = token.split(".")
    return f"{head}.{claims[:-2]}AA.{signature}"


@pytest.mark.parametrize("kind", BAD)
async def test_invalid_tokens_get_identical_responses(testbed, issuer, kind):
    await testbed.add_project("tides", {"oidc": [entry("run")]})
    code, answer, headers = await testbed.call("GET", "/v1/runs", bearer=BAD[kind](issuer))
    unknown, other, _ = await testbed.call("GET", "/v1/runs", bearer="crw_unknown")
    assert (code, answer) == (unknown, other) and code == 401
    assert headers["X-RateLimit-Limit"] == "60"


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"nbf": None},
        {"sub": None},
        {"environment": "production"},
        {"aud": [AUDIENCE]},
        {"kid": "two", "algorithm": "ES256", "key": "ec"},
    ],
)
async def test_valid_token_is_accepted(testbed, issuer, more):
    await testbed.add_project("tides", {"oidc": [entry("run", ref="refs/heads/main")]})
    if more.get("key"):
        more = {**more, "key": ec_key()}
    assert await status(testbed, issuer.token(NOW, **more)) == 200
    assert await status(testbed, issuer.token(NOW - timedelta(seconds=329), **more)) == 200


async def followed(testbed, run, bearer):
    """Return the open stream of a run's events, after its first event."""
    headers = {"Authorization": f"Bearer {bearer}", "Accept": "text/event-stream"}
    stream = await testbed.client.get(f"/v1/runs/{run}/events", headers=headers)
    assert stream.status == 200
    await stream.content.readuntil(b"\n\n")
    return stream


async def test_stream_ends_when_the_workflow_loses_its_project(testbed, issuer, monkeypatch):
    monkeypatch.setattr("api.auth.oidc.MIN_RELOAD_SECONDS", 0.0)
    for project in ("tides", "dunes"):
        await testbed.add_project(project, {"oidc": [entry("run")]})
    await testbed.claim_run(await testbed.add_run("run-tides", "tides"))
    raw = await testbed.add_run("run-dunes", "dunes")
    await testbed.claim_run(raw)
    services, token = testbed.client.server.app[SERVICES], issuer.token(NOW)
    waiting = asyncio.create_task(testbed.get("/v1/runs/run_tides?wait=60", bearer=token))
    async with asyncio.timeout(30):
        while not services.streams.credentials():
            await asyncio.sleep(0.01)
    tides = await followed(testbed, "run_tides", token)
    await testbed.update_spec("tides", oidc=[])
    # Opened with other permissions than the first, before their check.
    dunes = await followed(testbed, "run_dunes", token)
    await services.revocation.check_tokens()
    assert (await asyncio.wait_for(waiting, 30))["data"]["status"] == "running"
    assert b"run.completed" not in await asyncio.wait_for(tides.content.read(), 60)
    await testbed.finish_run(raw, "Succeeded", result={"output": "{}"})
    assert b"run.completed" in await asyncio.wait_for(dunes.content.read(), 60)


async def test_stream_outlives_changes_of_other_projects(testbed, issuer, monkeypatch):
    monkeypatch.setattr("api.auth.oidc.MIN_RELOAD_SECONDS", 0.0)
    uid = await testbed.add_project("tides", {"oidc": [entry("run")]})
    await testbed.add_project("dunes", {"oidc": [entry("run")]})
    raw = await testbed.add_run("run-a", "dunes")
    await testbed.claim_run(raw)
    stream = await followed(testbed, "run_a", issuer.token(NOW))
    await testbed.store.projects.remove("tides", uid, NOW)
    await testbed.add_project("moons", {"oidc": [entry("run")]})
    await testbed.update_spec("dunes", oidc=[entry("deploy")])
    await testbed.client.server.app[SERVICES].revocation.check_tokens()
    await testbed.finish_run(raw, "Succeeded", result={"output": "{}"})
    assert b"run.completed" in await asyncio.wait_for(stream.content.read(), 60)


@pytest.mark.usefixtures("stopped_windows")
async def test_requests_of_a_repository_share_a_rate_limit(testbed, issuer):
    await testbed.add_project("tides", {"oidc": [entry("run")]})
    left = []
    for ref in ("refs/heads/a", "refs/heads/b"):
        _, _, headers = await testbed.call("GET", "/v1/runs", bearer=issuer.token(NOW, ref=ref))
        left.append(int(headers["X-RateLimit-Remaining"]))
    assert left == [59, 58]


@pytest.fixture
def long_back_off(monkeypatch):
    """Let the pause after a failure not end within a test."""
    monkeypatch.setattr("api.auth.jwks.FAILURE_BACKOFF_SECONDS", 600.0)


async def test_unavailable_issuer_is_503_with_back_off(long_back_off, issuer, testbed):
    issuer.broken = {"status": 500}
    await testbed.add_project("tides", {"oidc": [entry("run")]})
    for _ in range(3):
        code, answer, headers = await testbed.call("GET", "/v1/runs", bearer=issuer.token(NOW))
        assert (code, answer["error"]["code"]) == (503, "unavailable")
        assert headers["Retry-After"] and headers["X-RateLimit-Limit"]
    assert len(issuer.asked) == 1


def workflow(**claims):
    return workflows.of_claims({"repository": REPOSITORY, **claims})


@pytest.mark.parametrize(
    ("spec", "claims", "expected"),
    [
        ([entry("run")], {}, {"read", "run"}),
        ([entry("run"), entry("deploy")], {}, {"read", "run", "deploy"}),
        ([entry("read")], {"ref": "refs/heads/x", "environment": "y"}, {"read"}),
        ([entry("run", ref="refs/heads/main")], {"ref": "refs/heads/main"}, {"read", "run"}),
        ([entry("run", ref="refs/heads/main")], {"ref": "refs/heads/Main"}, None),
        ([entry("run", ref="refs/heads/main")], {"ref": "refs/heads/main2"}, None),
        ([entry("run", ref="refs/heads/*")], {"ref": "refs/heads/main"}, {"read", "run"}),
        ([entry("run")], {"ref": "refs/pull/7/merge"}, None),
        ([entry("run", ref="refs/heads/main")], {}, None),
        ([entry("run", ref="")], {}, None),
        ([entry("run", ref="")], {"ref": ""}, None),
        ([entry("run", environment="prod")], {"environment": "prod"}, {"read", "run"}),
        ([entry("run", environment="prod")], {}, None),
        ([entry("run", environment="prod", ref="a")], {"environment": "prod", "ref": "b"}, None),
        ([entry("run", repository="octo/tides2")], {}, None),
        ([entry("admin", "run")], {}, {"read", "run"}),
        ([{"repository": 1, "scopes": ["run"]}, {"repository": REPOSITORY}, None, "x"], {}, None),
        ({"repository": REPOSITORY}, {}, None),
        (None, {}, None),
    ],
)
def test_grants_of_a_workflow(spec, claims, expected):
    found = workflows.grants(workflows.entries("tides", spec), workflow(**claims))
    assert (None if found is None else found.scopes_in("tides")) == (expected and frozenset(expected))


@pytest.mark.parametrize(
    ("change", "good"),
    [({}, True), ({"exp": 971}, True), ({"exp": 970}, False), ({"iat": 1030}, True), ({"iat": 1031}, False),
     ({"nbf": 1030}, True), ({"nbf": 1031}, False), ({"nbf": None}, False), ({"nbf": 0}, True),
     ({"exp": True}, False), ({"exp": 1e9}, False), ({"iat": 0}, True), ({"iat": -1}, False),
     ({"exp": 1000 + 86_400}, True), ({"exp": 1001 + 86_400}, False)],
)  # fmt: skip
def test_token_validity_period(change, good):
    now = NOW.fromtimestamp(1000, NOW.tzinfo)
    assert is_current({"iat": 1000, "nbf": 1000, "exp": 1300, **change}, now) is good


@pytest.mark.parametrize(("expires", "good"), [(10**11 - 1, True), (10**11, False)])
def test_token_ends_in_a_year_that_a_datetime_can_have(expires, good):
    now = NOW.fromtimestamp(10**11 - 60, NOW.tzinfo)
    assert is_current({"iat": 10**11 - 60, "exp": expires}, now) is good


def test_signature_is_verified_without_the_clock_of_this_machine(issuer):
    claims = issuer.claims(NOW.replace(year=2100))
    text = issuer.token(NOW.replace(year=2100))
    public_key = rsa_key().public_key()
    assert verify(text, public_key, "RS256", issuer.url, AUDIENCE) == claims
    assert verify(text, public_key, "RS256", "https://other.example", AUDIENCE) is None


async def test_entries_are_read_again_after_ten_seconds_or_a_change(testbed, issuer, monkeypatch):
    await testbed.add_project("tides", {"oidc": [entry("run")]})
    stored, now, reads = testbed.store.workflows, [1000.0], []

    async def all_counted(read=stored.all):
        reads.append(now[0])
        return await read()

    monkeypatch.setattr(stored, "all", all_counted)
    tokens = WorkflowTokens(issuer.url, AUDIENCE, IssuerKeys(issuer.url), stored, lambda: now[0])
    text = issuer.token(NOW)

    async def scopes(at):
        now[0] = at
        found = await tokens.caller(text, parse_unverified(text), NOW)
        return found and found.grants.scopes_in("tides")

    assert [await scopes(at) for at in (1000.0, 1001.0, 1009.9)] == [{"read", "run"}] * 3
    assert [await scopes(at) for at in (1010.0, 1010.5)] == [{"read", "run"}] * 2
    await testbed.update_spec("tides", oidc=[entry("deploy")])
    assert await scopes(1010.9) == {"read", "run"}
    assert [await scopes(at) for at in (1011.0, 1012.5)] == [{"read", "deploy"}] * 2
    assert reads == [1000.0, 1010.0, 1011.0]


async def test_caller_of_a_workflow(testbed, issuer):
    await testbed.add_project("tides", {"oidc": [entry("run", repository="Octo/Tides")]})
    tokens = WorkflowTokens(issuer.url, AUDIENCE, IssuerKeys(issuer.url), testbed.store.workflows)
    text = issuer.token(NOW, repository="octo/TIDES", repository_id="42", sha="ab" * 20)
    assert await tokens.caller(text, parse_unverified(text), NOW) == Caller(
        key_id="workflow:octo/TIDES:refs/heads/main",
        grants=Grants(None, {"tides": frozenset({"read", "run"})}),
        plan=None,
        expires_at=NOW + timedelta(seconds=330),
        kind="workflow",
        rate_limit_key="workflow:octo/tides",
        credential_id=f"token:{hash_of(text)}",
        commit=ProvenCommit("octo/TIDES", "ab" * 20),
        token=text,
    )


def test_text_that_is_not_a_token_is_ignored(issuer):
    good = issuer.token(NOW)
    assert parse_unverified(good) is not None
    deep = "W" * 5999
    for text in ("", "a.b.c", good[:-400], good + "=", f" {good}", good.replace(".", ",", 1), "x" * 8000,
                 f"{good}.{good}", ".".join(("W10", "W10", "x" * 60)), f"eyJ9.{deep}.{'x' * 60}",
                 json.dumps({"a": 1}), "crw_abc.def.ghi"):  # fmt: skip
        assert parse_unverified(text) is None, text[:40]
