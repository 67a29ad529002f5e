"""Every operation by scope, own or foreign project and state of the key, generated from the document.

The security requirement of an operation names its scopes. Its examples show what belongs to a project:
the names of the example's project, deployment and run in a path, a query or a body.
"""

import json
from datetime import timedelta

import pytest
from yarl import URL

from api.v1 import path_parameters
from crds import api_keys
from tests.unit.api.auth.issuer import rsa_key
from tests.unit.api.conftest import NOW
from tests.unit.api.described import DESCRIPTION

OPERATIONS = [
    (method, path, found["security"][0]["key"][0])
    for method, path, found in DESCRIPTION.operations()
    if found["security"]
]
SCOPES = ("read", "run", "preview", "deploy", "admin")
OWN = [path_parameters.EXAMPLES[name] for name in ("name", "deployments", "deliveries", "runs", "api-keys")]
FOREIGN = ["theirs", "dep_theirs", "msg_theirs", "run_theirs", "F0r31gn000"]


def foreign(text: str) -> str:
    for own, other in zip(OWN, FOREIGN, strict=True):
        text = text.replace(own, other)
    return text


def request(method: str, path: str, other: bool) -> tuple[URL, object]:
    """Return the example request of an operation, or the same for a foreign project."""
    found = DESCRIPTION.operation(method, path)
    query = {p["name"]: p["example"] for p in found.get("parameters", ()) if "example" in p}
    for parameter in DESCRIPTION.whole["paths"][path].get("parameters", ()):
        path = path.replace("{" + parameter["name"] + "}", parameter["example"])
    body = found.get("requestBody", {}).get("content", {}).get("application/json", {}).get("example")
    url, text = str(URL(path).with_query(query)), json.dumps(body)
    return (URL(foreign(url)), json.loads(foreign(text))) if other else (URL(url), body)


def may(held: str, scope: str) -> bool:
    """Return whether a caller with one scope is allowed; all but Kubernetes tokens may also read."""
    bare = held.removeprefix("only ")
    if (bare, scope) == ("deploy", "preview"):
        return True
    return bare in (scope, "admin") or (scope == "read" and bare == held)


def expected(method: str, path: str, scope: str, held: str, other: bool) -> int:
    """Return the expected status."""
    if not may(held, scope):
        return 403
    if not other:
        # The example deploys to production.
        refused = (held, method, path) == ("preview", "POST", "/v1/deployments")
        return 403 if refused else allowed_status(method, path)
    if "{" in path:
        return 404
    url, body = request(method, path, False)
    named = (str(url), json.dumps(body)) != tuple(map(foreign, (str(url), json.dumps(body))))
    return 403 if named else allowed_status(method, path)


def allowed_status(method: str, path: str) -> int:
    """Return the status of an allowed call, where no kube-apiserver answers and the run has ended."""
    if path.endswith("/cancel") or "/inputs/" in path:
        return 409
    if path.endswith("/redeliver"):
        return 202
    if path in ("/v1/uploads", "/v1/api-keys") and method == "POST":
        return 201
    if path.startswith("/v1/api-keys/") and method == "DELETE":
        return 204
    needs_apiserver = "/env" in path or method not in ("GET", "HEAD")
    return 503 if needs_apiserver else 200


@pytest.fixture
async def testbed_with_foreign(testbed):
    """The example objects, and the same objects in a foreign project."""
    await testbed.add_example_objects()
    await testbed.add_example_objects(foreign)
    return testbed


@pytest.fixture
def settings(issuer):
    return {"CREWYARD_OIDC_ISSUER": issuer.url}


HOLDING = {
    "one of two": ([OWN[0]], {OWN[0]}),
    "all": (None, {OWN[0], FOREIGN[0]}),
    "one that is not there": (["absent"], set()),
}


@pytest.mark.parametrize("holding", HOLDING)
async def test_scopes_and_projects(testbed_with_foreign, holding):
    projects, accessible = HOLDING[holding]
    bearers = {held: testbed_with_foreign.create_key(held, projects=projects) for held in SCOPES}
    assert await call_all_operations(testbed_with_foreign, bearers, accessible) > 270


async def test_scopes_and_projects_of_workflows(testbed_with_foreign, issuer):
    bearers = {}
    for held in ("read", "run", "deploy"):
        bearers[held] = issuer.token(NOW, repository=f"octo/{held}")
    entries = [{"repository": f"octo/{held}", "scopes": [held]} for held in bearers]
    await testbed_with_foreign.update_spec(OWN[0], oidc=entries)
    assert await call_all_operations(testbed_with_foreign, bearers, {OWN[0]}) > 200


async def call_all_operations(testbed_with_foreign, bearers, accessible):
    """Call every operation, on the own and on the foreign project, with a caller of each scope.

    `accessible` are the projects that the callers can see. Return the number of calls.
    """
    cells, everywhere = 0, {OWN[0], FOREIGN[0]} <= accessible
    for held, bearer in bearers.items():
        for method, path, scope in OPERATIONS:
            testbed_with_foreign.reset_rate_limits()
            for other in (False, True):
                url, body = request(method, path, other)
                unseen = (FOREIGN if other else OWN)[0] not in accessible
                if method == "DELETE" and "api-keys" in path and not unseen and held.endswith("admin"):
                    continue  # Later calls need the example key; another test covers its deletion.
                status, answer, _ = await testbed_with_foreign.call(method, url, body, bearer=bearer)
                expected_status = expected(method, path, scope, held, unseen)
                if path == "/v1/installation" and not everywhere:
                    expected_status = 403
                cell = (held, method, str(url), status, answer)
                assert status == expected_status, cell
                if expected_status == 403 and not may(held, scope) and method != "HEAD":
                    assert answer["error"]["details"]["required_scope"] == scope, cell
                cells += 1
    print(f"cells of the table: {cells}")
    return cells


async def test_lists_hide_foreign_projects(testbed_with_foreign):
    bearer = testbed_with_foreign.create_key("admin", projects=[OWN[0]])
    for path in ("/v1/projects", "/v1/runs", "/v1/api-keys"):
        text = json.dumps(await testbed_with_foreign.get(path, bearer=bearer))
        assert OWN[0] in text and not any(name in text for name in FOREIGN), path


STATES = {
    "absent": lambda testbed: "",
    "malformed": lambda testbed: "crw_not-a-key",
    "cut": lambda testbed: testbed.admin[:-1],
    "unknown": lambda testbed: api_keys.generate().text,
    "expired": lambda testbed: testbed.create_key("admin", expires_at=NOW - timedelta(seconds=1)),
    "revoked": lambda testbed: testbed.create_key("admin", revoked=True),
    "token of an unknown workflow": lambda testbed: testbed.issuer.token(NOW),
    "expired token": lambda testbed: testbed.issuer.token(NOW - timedelta(hours=1)),
    "forged token": lambda testbed: testbed.issuer.token(NOW, key=rsa_key(2048, 1)),
    "token of an unknown issuer": lambda testbed: testbed.issuer.token(NOW, iss="https://other.example"),
}


@pytest.mark.parametrize("state", STATES)
async def test_invalid_keys_are_rejected_everywhere(testbed_with_foreign, issuer, state):
    testbed_with_foreign.issuer = issuer
    bearer, answers = STATES[state](testbed_with_foreign), set()
    for method, path, _ in OPERATIONS:
        testbed_with_foreign.reset_rate_limits()  # Sixty per minute without a key.
        url, body = request(method, path, False)
        status, answer, headers = await testbed_with_foreign.call(method, url, body, bearer=bearer)
        assert status == 401, (method, path, answer)
        answers.add(b"" if method == "HEAD" else json.dumps(answer))
        assert headers["WWW-Authenticate"].startswith("Bearer ")
    assert len(answers) == 2, "the answer tells more than that the key is bad"


async def test_public_operations_need_no_key(testbed_with_foreign):
    for method, path, found in DESCRIPTION.operations():
        if not found["security"] and path != "/v1/uploads/{id}/content" and "/hooks/" not in path:
            assert (await testbed_with_foreign.call(method, path, bearer=""))[0] == 200, path
