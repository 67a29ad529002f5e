"""The document matches the routes, and every example works."""

import base64
import hashlib
import json
import re

import pytest
from openapi_spec_validator import validate

from api.openapi.document import document, operation_id
from api.openapi.references import Components
from api.openapi.routes import OPERATIONS
from api.v1.endpoints import ENDPOINTS
from tests.unit.api.described import DESCRIPTION

NON_OPERATION_PATHS = frozenset({"/", "/console", "/console/sign-in", "/console/{file}"})
"""Paths that are not API operations: redirects to the page, its sign-in, and its files."""
OPERATION = [(method, path) for method, path, _ in DESCRIPTION.operations()]


def test_document_is_valid_openapi():
    validate(json.loads(json.dumps(document(OPERATIONS, "https://crewyard.example"))))


async def test_document_is_served_and_lists_every_route(testbed):
    served = await testbed.get("/openapi.json", bearer="")
    assert served == DESCRIPTION.whole
    routed = {
        (route.method, (route.resource.canonical if route.resource else "").replace(":(?s:.+)", ""))
        for route in testbed.client.server.app.router.routes()
        if route.method != "*" and route.resource.canonical not in NON_OPERATION_PATHS
    }
    assert {(method, path) for method, path in OPERATION} == routed
    _, _, headers = await testbed.call("GET", "/openapi.json", bearer="")
    # A proxy that compresses makes the tag a weak one.
    for tag in (headers["ETag"], f"W/{headers['ETag']}"):
        again = await testbed.call("GET", "/openapi.json", bearer="", headers={"If-None-Match": tag})
        assert (again[0], again[1]) == (304, b"")


def test_every_operation_has_descriptions_and_responses():
    for method, path, found in DESCRIPTION.operations():
        where = f"{method} {path}"
        assert found["summary"] and found["description"], where
        assert any(status < "400" for status in found["responses"]), where
        if "requestBody" in found and path != "/v1/uploads/{id}/content":
            assert all("example" in content for content in found["requestBody"]["content"].values()), where
        if path.startswith("/v1/") and found["security"]:
            assert {"400", "401", "429", "500", "503"} <= set(found["responses"]), where


def test_every_example_matches_its_schema():
    seen = 0
    for method, path, found in DESCRIPTION.operations():
        where = f"{method} {path}"
        places = list(found.get("requestBody", {}).get("content", {}).values())
        for answer in found["responses"].values():
            places += DESCRIPTION.resolve(answer).get("content", {}).values()
        places += [*found.get("parameters", ()), *DESCRIPTION.whole["paths"][path].get("parameters", ())]
        for place in places:
            if "example" in place:
                DESCRIPTION.check_schema(place["schema"], place["example"], where)
                seen += 1
    assert seen > 200


async def test_every_example_runs(testbed):
    """Without an apiserver, changes of objects get a 503; all other calls succeed."""
    await testbed.add_example_objects()
    for method, path in OPERATION:
        status, body, _ = await testbed.call_example(method, path)
        if path == "/v1/uploads/{id}/content":
            assert status == 403  # Each upload URL has a new signature.
        elif path.startswith("/v1/hooks/"):
            assert status == 404  # The delivery has no valid signature.
        elif method in ("GET", "HEAD") and not path.endswith("/env"):
            assert status == 200, (method, path, body)
        else:
            assert status in (200, 201, 202, 204, 409, 503), (method, path, body)


def test_names_are_unique():
    components = Components()
    components.refer({"title": "A", "type": "string"})
    with pytest.raises(ValueError, match="two schemas are called A"):
        components.refer({"title": "A", "type": "integer"})
    twice = (ENDPOINTS[0], ENDPOINTS[0])
    with pytest.raises(ValueError, match="two operations are called list_projects"):
        document(twice, "http://a.example")
    assert operation_id("Read the log of a run") == "read_log_run"


async def test_docs_page_loads_no_external_resources(testbed):
    status, body, headers = await testbed.call("GET", "/docs", bearer="")
    text, policy = body.decode(), headers["Content-Security-Policy"]
    assert status == 200 and policy.startswith("default-src 'none'; ") and "unsafe" not in policy
    assert not re.search(r"(src|href)=.?(https?:)?//|@import|\burl\(|innerHTML|\beval\b|\son\w+=", text)
    for tag in ("script", "style"):
        (content,) = re.findall(f"<{tag}>(.*?)</{tag}>", text, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in policy
    assert text.count("style=") == 0, "the policy allows no style on an element"
