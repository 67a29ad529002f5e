"""Form and headers of all responses."""

import asyncio
import json
from types import SimpleNamespace

import pytest
from aiohttp.test_utils import TestClient, TestServer

from api import health
from api.__main__ import filter_malformed_requests
from api.app import make_client_app
from api.config import parse
from api.store.errors import StoreUnavailable
from api.store.store import Store
from api.v1 import path_parameters

PATHS = ["/v1/runs", "/v1/projects", "/v1/deployments/dep_none", "/v1/nowhere", "/v1/runs/run_x/events"]


def is_error(body, code):
    assert set(body) == {"error"}
    assert set(body["error"]) == {"code", "message", "details"}
    assert body["error"]["code"] == code
    assert isinstance(body["error"]["details"], dict) and body["error"]["message"]
    return body["error"]["details"]


@pytest.mark.parametrize("path", PATHS)
async def test_v1_responses_have_rate_limit_headers_and_request_id(testbed, path):
    for bearer in (testbed.admin, "", "crw_wrong"):
        _, _, headers = await testbed.call("GET", path, bearer=bearer)
        assert int(headers["X-RateLimit-Limit"]) > 0
        assert int(headers["X-RateLimit-Remaining"]) >= 0
        assert int(headers["X-RateLimit-Reset"]) > 1_700_000_000
        assert headers["X-Request-Id"].startswith("req_")


async def test_rate_limit_headers_are_on_v1_responses_of_any_status(testbed, monkeypatch):
    await testbed.add_example_objects()
    seen, events = set(), f"/v1/runs/{path_parameters.EXAMPLES['runs']}/events"
    stream, over = {"Accept": "text/event-stream"}, {"Last-Event-ID": "3"}
    calls = [
        ("GET", "/v1/projects", {}), ("HEAD", "/v1/projects", {}), ("GET", "/v1", {}), ("GET", "/v1/", {}),
        ("GET", "/v1/nowhere", {}), ("PUT", "/v1/runs", {}), ("GET", "/v1/runs?page=0", {}),
        ("GET", "/v1/runs", {"Accept": "image/png"}), ("POST", "/v1/runs", {"Content-Type": "text/plain"}),
        ("GET", events, stream), ("GET", events, {**stream, **over}), ("OPTIONS", "/v1/runs", {}),
    ]  # fmt: skip
    for bearer in (testbed.admin, "crw_wrong", testbed.create_key("read", projects=["other"])):
        for method, path, headers in calls:
            authorization = {**headers, "Authorization": f"Bearer {bearer}"}
            body = b"x" if "Content-Type" in headers else None
            async with testbed.client.request(method, path, headers=authorization, data=body) as answer:
                seen.add(answer.status)
                await answer.read()
                for name in ("Limit", "Remaining", "Reset"):
                    assert int(answer.headers[f"X-RateLimit-{name}"]) >= 0, (method, path, answer.status)
    monkeypatch.setattr(testbed.store.keys, "get", _away)
    async with testbed.client.get("/v1/runs") as answer:
        assert answer.status == 503 and answer.headers["X-RateLimit-Limit"] == "60"
    assert seen >= {200, 204, 400, 401, 403, 404, 405, 406, 415}


async def _away(*_):
    raise StoreUnavailable("away")


@pytest.mark.parametrize(
    "header",
    [
        "",
        "Bearer",
        "Bearer ",
        "Basic abc",
        "Bearer crw_short",
        "bearer a b",
        "Bearer " + "x" * 600,
        "Token y",
    ],
)
async def test_invalid_keys_get_identical_responses(testbed, header):
    answers = []
    for authorization in (header, None):
        headers = {} if authorization is None else {"Authorization": authorization}
        status, body, sent = await testbed.call("GET", "/v1/runs", bearer="", headers=headers)
        answers.append((status, body, sent["WWW-Authenticate"]))
    assert answers[0] == answers[1]
    is_error(answers[0][1], "unauthorized")


async def test_unknown_path_and_wrong_method(testbed):
    status, body, _ = await testbed.call("GET", "/v1/nowhere")
    assert status == 404
    is_error(body, "not_found")
    status, body, _ = await testbed.call("GET", "/elsewhere", bearer="")
    assert status == 404
    is_error(body, "not_found")
    status, body, headers = await testbed.call("DELETE", "/v1/runs")
    assert status == 405
    assert is_error(body, "method_not_allowed")["allowed"] == ["GET", "HEAD", "POST"]
    assert headers["Allow"] == "GET, HEAD, POST"


async def test_body_must_be_declared_as_json(testbed):
    status, body, _ = await testbed.call("POST", "/v1/projects", data="name=a")
    assert status == 415
    is_error(body, "unsupported_media_type")


@pytest.mark.parametrize(
    ("raw", "word"),
    [
        (b"{", "JSON"),
        (b"[]", "object"),
        (b'{"name": "a", "name": "b"}', "twice"),
        (b'{"name": NaN}', "NaN"),
        (b'{"name": 1e999}', "large"),
        (b'{"name": "\\ud800"}', "surrogate"),
        (b"\xff", "UTF-8"),
        (b"[" * 100_000, "200 levels"),
        (b'{"a":' * 250 + b"1" + b"}" * 250, "200 levels"),
        (b'{"name": ' + b"1" * 5000 + b"}", "JSON"),
    ],
)
async def test_invalid_json_is_rejected(testbed, raw, word):
    status, body, _ = await testbed.call(
        "POST", "/v1/projects", data=raw, headers={"Content-Type": "application/json"}
    )
    assert status == 400
    is_error(body, "invalid_request")
    assert word in body["error"]["message"]


async def test_too_large_body(testbed):
    status, body, _ = await testbed.call(
        "POST", "/v1/runs", {"deployment": "a", "input": {"x": "y" * (1 << 22)}}
    )
    assert status == 413
    is_error(body, "payload_too_large")
    status, body, _ = await testbed.call(
        "POST", "/v1/runs", {"deployment": "a", "input": {"x": "y" * (1 << 20)}}
    )
    assert status == 413
    assert is_error(body, "payload_too_large")["field"] == "input"


async def test_body_of_escapes_has_room_for_the_largest_input(testbed):
    """Many clients write each letter of Greek or Russian, two bytes in UTF-8, as six."""
    await testbed.add_project("a")
    letters = "я" * (1 << 19)
    for text, expected in ((letters[:-4], 409), (letters, 413)):
        body = json.dumps({"deployment": "a", "input": {"x": text}}, indent=2)
        assert body.isascii()
        status, _, _ = await testbed.call(
            "POST", "/v1/runs", data=body, headers={"Content-Type": "application/json"}
        )
        assert status == expected


@pytest.mark.parametrize(
    ("path", "field"),
    [
        ("/v1/runs?page=0", "page"),
        ("/v1/runs?page=-1", "page"),
        ("/v1/runs?page=1.5", "page"),
        ("/v1/runs?page=", "page"),
        ("/v1/runs?page=99999999999999999999", "page"),
        ("/v1/runs?per_page=0", "per_page"),
        ("/v1/runs?per_page=101", "per_page"),
        ("/v1/runs?page=1&page=2", "page"),
        ("/v1/runs?status=done", "status"),
        ("/v1/runs?status=", "status"),
        ("/v1/runs?projct=a", "projct"),
        ("/v1/runs?deployment=run_x", "deployment"),
        ("/v1/runs?project=No_Such", "project"),
        ("/v1/deployments", "project"),
        ("/v1/deployments?project=a&status=succeeded", "status"),
        ("/v1/projects/a?x=1", "x"),
    ],
)
async def test_invalid_parameter_is_named_and_not_clamped(testbed, path, field):
    status, body, _ = await testbed.call("GET", path)
    assert status == 400
    assert is_error(body, "invalid_request")["field"] == field


async def test_misspelled_parameter_gets_a_suggestion(testbed):
    _, body, _ = await testbed.call("GET", "/v1/runs?stauts=failed")
    assert "did you mean status?" in body["error"]["message"]


@pytest.mark.parametrize(
    ("path", "body", "field"),
    [
        ("/v1/projects", {}, "name"),
        ("/v1/projects", {"name": "Bad_Name"}, "name"),
        ("/v1/projects", {"name": "a\n"}, "name"),
        ("/v1/projects", {"name": "a", "sorce": {}}, "sorce"),
        ("/v1/projects", {"name": "a", "source": {"git": {}}}, "source.git.url"),
        ("/v1/projects", {"name": "a", "source": {"git": {"url": 5}}}, "source.git.url"),
        (
            "/v1/projects",
            {"name": "a", "source": {"git": {"url": "http://x", "secretRef": {}}}},
            "source.git.secretRef",
        ),
        ("/v1/uploads", {"project": "a"}, "size"),
        ("/v1/uploads", {"project": "a", "size": 1.0}, "size"),
        ("/v1/uploads", {"project": "a", "size": True}, "size"),
        ("/v1/deployments", {"build_context_url": "x"}, "project"),
        ("/v1/runs", {"input": {}}, "deployment"),
        ("/v1/runs", {"deployment": "a", "input": []}, "input"),
        ("/v1/runs", {"deployment": "a", "timeout": "0s"}, "timeout"),
        ("/v1/runs", {"deployment": "a", "timeout": "25h"}, "timeout"),
        ("/v1/runs", {"deployment": "a", "entrypoint": "kick off"}, "entrypoint"),
        ("/v1/runs", {"deployment": "a", "inputs": {}}, "inputs"),
    ],
)
async def test_invalid_body_field_is_named(testbed, path, body, field):
    status, answer, _ = await testbed.call("POST", path, body)
    assert status == 400
    assert is_error(answer, "invalid_request")["field"] == field


async def test_unsupported_accept_header(testbed):
    status, body, _ = await testbed.call("GET", "/v1/runs", headers={"Accept": "text/html"})
    assert status == 406
    assert is_error(body, "not_acceptable")["available"] == ["application/json"]


async def test_all_accept_lines_are_read(testbed):
    await testbed.add_project("crew")
    path, accepted = "/v1/projects/crew/usage", ("application/json;q=0.5", "text/csv")
    for lines, kind in ((accepted[:1], "application/json"), (accepted, "text/csv")):
        headers = [("Authorization", f"Bearer {testbed.admin}"), *(("Accept", line) for line in lines)]
        async with testbed.client.get(path, headers=headers) as answer:
            assert (answer.status, answer.content_type) == (200, kind)


async def test_apiserver_unavailable(testbed):
    status, body, headers = await testbed.call("POST", "/v1/projects", {"name": "a"})
    assert (status, headers["Retry-After"]) == (503, "2")
    is_error(body, "unavailable")


async def test_store_unavailable(testbed, tmp_path):
    await testbed.store.close()
    for file in tmp_path.glob("index.sqlite3*"):
        file.unlink()
    (tmp_path / "index.sqlite3").mkdir()
    status, body, headers = await testbed.call("GET", "/v1/runs")
    assert (status, headers["Retry-After"]) == (503, "2")
    is_error(body, "unavailable")
    status, _, _ = await testbed.call("GET", "/readyz", bearer="")
    assert status == 503
    status, _, _ = await testbed.call("GET", "/healthz", bearer="")
    assert status == 200


async def test_internal_error_reveals_only_the_request_id(testbed, monkeypatch):
    async def broken(*_, **__):
        raise RuntimeError("the password is swordfish")

    monkeypatch.setattr(testbed.store.runs, "page", broken)
    status, body, headers = await testbed.call("GET", "/v1/runs", headers={"X-Request-Id": "mine-1"})
    assert status == 500
    assert is_error(body, "internal_error") == {"request_id": "mine-1"}
    assert headers["X-Request-Id"] == "mine-1"
    assert "swordfish" not in str(body)


async def test_metrics_are_labelled_by_route_template(testbed):
    await testbed.call("GET", "/v1/runs/run_secret")
    status, text, _ = await testbed.call("GET", "/metrics", bearer="")
    assert status == 200
    assert b'crewyard_http_requests_total{code="404",method="GET",route="/v1/runs/{id}"} 1.0' in text
    assert b"run_secret" not in text


async def test_ready_after_initial_list_or_grace_period(tmp_path, monkeypatch):
    store = await Store.open(tmp_path, "crews")
    seen = [False]
    config = parse({"CREWYARD_TOKEN_KEY": "0" * 32})
    monkeypatch.setattr(health, "CATCH_UP_GRACE_SECONDS", 600.0)
    application = make_client_app(config, store, SimpleNamespace(), caught_up=lambda: seen[0])
    async with TestClient(TestServer(application)) as client:
        assert (await client.get("/readyz")).status == 503
        seen[0] = True
        assert (await client.get("/readyz")).status == 200
        seen[0] = False
        monkeypatch.setattr(health, "CATCH_UP_GRACE_SECONDS", 0.0)
        assert (await client.get("/readyz")).status == 200
    await store.close()


async def send_raw(testbed, *lines: str, body: bytes = b"") -> list[str]:
    """Send a raw request, and its body after 100 Continue; return the first response lines."""
    url = testbed.client.make_url("/")
    reader, writer = await asyncio.open_connection(url.host, url.port)
    writer.write("\r\n".join([*lines, "Host: testbed", "Connection: close", "", ""]).encode())
    first = [(await asyncio.wait_for(reader.readline(), 60)).decode().strip()]
    if first[0].startswith("HTTP/1.1 100"):
        await reader.readline()
        writer.write(body)
        first.append((await asyncio.wait_for(reader.readline(), 60)).decode().strip())
    writer.close()
    return first


async def test_100_continue_is_sent_after_authentication(testbed):
    body = b'{"name": "Bad_Name"}'
    head = ["POST /v1/projects HTTP/1.1", "Content-Type: application/json", "Expect: 100-continue"]
    length = f"Content-Length: {len(body)}"
    key = f"Authorization: Bearer {testbed.admin}"
    assert await send_raw(testbed, *head, length) == ["HTTP/1.1 401 Unauthorized"]
    assert await send_raw(testbed, *head, key, "Content-Length: 99999999") == [
        "HTTP/1.1 413 Request Entity Too Large"
    ]
    assert await send_raw(testbed, *head, key, length, body=body) == [
        "HTTP/1.1 100 Continue",
        "HTTP/1.1 400 Bad Request",
    ]


async def test_malformed_http_gets_400_and_no_log_line(testbed, caplog):
    caplog.handler.addFilter(filter_malformed_requests)
    assert (await send_raw(testbed, "GET /v1/runs HTTP/1.1", "X-Odd: \x00"))[0].endswith("400 Bad Request")
    assert (await send_raw(testbed, "GET /v1/runs HTTP/1.1", "X-Long: " + "a" * 20_000))[0].endswith(
        "400 Bad Request"
    )
    assert caplog.records == []
    assert (await send_raw(testbed, "GET /healthz HTTP/1.1"))[0] == "HTTP/1.1 200 OK"


async def test_unknown_expectation_is_ignored(testbed):
    status, _, headers = await testbed.call("GET", "/v1/runs", headers={"Expect": "miracles"})
    assert status == 200 and headers["X-RateLimit-Limit"]
