"""The client and its program against a faulty service, over real connections."""

import hashlib
import io
import json
import subprocess
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import quote

import httpx
import pytest

from api.v1.deployments.schema import CREATE
from crewyard import Client, CrewyardError, NotFound, Unavailable, WrongValue, audit_chain, retry
from crewyard.cli.download_directory import ArtifactDirectory
from crewyard.cli.main import call
from crewyard.cli.source_tree import read_tree
from tests.testbed import hostile_file_names

PAGE = {"total": 2, "page": 1, "per_page": 100, "has_more": False}
PROJECT = {
    "name": "demo",
    "namespace": "crews",
    "plan": "free",
    "active_deployment_id": None,
    "ready": {"status": "True", "message": ""},
    "created_at": "2026-11-21T10:00:00Z",
    "source": None,
    "run": None,
    "build": None,
}


class FaultyService:
    """Responses by method and path as (status, headers, body), the last one repeatedly."""

    def __init__(self):
        self.responses, self.requests, self.bodies = {}, [], []
        service = self

        class RequestHandler(BaseHTTPRequestHandler):
            def respond(self):
                length = int(self.headers.get("Content-Length") or 0)
                service.bodies.append(self.rfile.read(length))
                path = self.path.partition("?")[0]
                service.requests.append((self.command, path, dict(self.headers)))
                left = service.responses[self.command, path]
                status, headers, body = left.pop(0) if len(left) > 1 else left[0]
                raw = body if isinstance(body, bytes) else json.dumps(body).encode()
                self.send_response(status)
                for name, value in {"Content-Type": "application/json", **headers}.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(raw)))
                self.end_headers()
                self.wfile.write(raw)

            do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = respond

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), RequestHandler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"


@pytest.fixture
def service(monkeypatch):
    fake = FaultyService()
    thread = threading.Thread(target=fake.server.serve_forever, args=(0.01,))
    thread.start()
    monkeypatch.setenv("CREWYARD_URL", fake.url)
    monkeypatch.setenv("CREWYARD_API_KEY", "crw_x")
    monkeypatch.setattr(retry, "pause", lambda *_: 0.0)
    yield fake
    fake.server.shutdown()
    fake.server.server_close()
    thread.join()


def failure(status):
    return status, {}, {"error": {"code": "unavailable", "message": "away", "details": {}}}


def posted(service, path):
    return [
        json.loads(body)
        for (method, requested, _), body in zip(service.requests, service.bodies, strict=True)
        if (method, requested) == ("POST", path)
    ]


def stream(*events):
    text = "".join(
        f"id: {number}\nevent: {kind}\ndata: {json.dumps(data)}\n\n" for number, kind, data in events
    )
    return 200, {"Content-Type": "text/event-stream"}, text.encode()


@pytest.mark.parametrize(
    ("arguments", "budget"),
    [
        (["--run-tokens", "200"], {"run": {"tokens": 200}}),
        (["--run-cost", "2.5", "--month-tokens", "0"], {"month": {"tokens": 0}, "run": {"cost": 2.5}}),
        (["--no-budget"], None),
    ],
)
def test_budgets_of_runs_and_months_are_set_and_removed(service, arguments, budget):
    service.responses["PATCH", "/v1/projects/demo"] = [(200, {}, {"data": {"name": "demo"}})]
    assert call(["projects", "set", "demo", *arguments]) == 0
    assert json.loads(service.bodies[-1]) == {"budget": budget}


@pytest.mark.parametrize(
    ("arguments", "change"),
    [
        (["--warm-builds", "2"], {"build": {"warm": 2}}),
        (["--warm-builds", "0"], {"build": {"warm": None}}),
        (["--warm", "1", "--warm-builds", "2"], {"run": {"warm": 1}, "build": {"warm": 2}}),
        (["--no-requirements", "--warm-builds", "2"], {"build": {"requirements": None, "warm": 2}}),
        (["--no-requirements"], {"build": {"requirements": None}}),
    ],
)
def test_waiting_pods_are_set_and_removed(service, arguments, change):
    service.responses["PATCH", "/v1/projects/demo"] = [(200, {}, {"data": {"name": "demo"}})]
    assert call(["projects", "set", "demo", *arguments]) == 0
    assert json.loads(service.bodies[-1]) == change


@pytest.mark.parametrize(
    ("arguments", "spec"),
    [
        (["--warm-builds", "2"], {"build": {"warm": 2}}),
        (["--warm-builds", "0"], {}),
        (["--requirement", "lxml", "--warm-builds", "2"], {"build": {"requirements": ["lxml"], "warm": 2}}),
    ],
)
def test_a_project_is_created_with_waiting_pods(service, arguments, spec):
    service.responses["POST", "/v1/projects"] = [(201, {}, {"data": PROJECT})]
    assert call(["projects", "create", "demo", *arguments]) == 0
    assert json.loads(service.bodies[-1]) == {"name": "demo", **spec}


@pytest.mark.parametrize(
    ("arguments", "spec"),
    [
        (["--namespace", "", "--plan", ""], {"namespace": "", "plan": ""}),
        (["--git", ""], {"source": {"git": {"url": ""}}}),
        (
            ["--git", "u", "--branch", "", "--path", "p"],
            {"source": {"git": {"url": "u", "ref": {"branch": ""}, "path": "p"}}},
        ),
    ],
)
def test_an_empty_option_of_a_project_is_sent_and_refused(service, arguments, spec):
    service.responses["POST", "/v1/projects"] = [failure(400)]
    assert call(["projects", "create", "demo", *arguments]) == 3
    assert json.loads(service.bodies[-1]) == {"name": "demo", **spec}


def test_a_rollback_to_nothing_deploys_nothing(service, tmp_path, capsys):
    (tmp_path / "main.py").write_text("1")
    assert call(["deploy", str(tmp_path), "-p", "demo", "--rollback", ""]) == 2
    assert "'' is not a name" in capsys.readouterr().err
    assert service.requests == []


@pytest.mark.parametrize(("build", "shown"), [({"warm": 2}, "2"), ({}, "-"), (None, "-")])
def test_a_project_is_shown_with_its_waiting_pods(service, capsys, build, shown):
    service.responses["GET", "/v1/projects/demo"] = [(200, {}, {"data": {**PROJECT, "build": build}})]
    assert call(["projects", "show", "demo"]) == 0
    line = next(line for line in capsys.readouterr().out.splitlines() if line.startswith("WARM BUILDS"))
    assert line.split()[-1] == shown


DEPLOYMENT = {
    "id": "dep_a",
    "status": "active",
    "created_at": "2026-11-21T10:00:00Z",
    "activated_at": None,
    "message": "",
    "git_sha": None,
    "build_logs_url": "https://crews.example.org/v1/deployments/dep_a/logs",
}
RUN = {
    "id": "run_a",
    "status": "pending",
    "created_at": "2026-11-21T10:00:00Z",
    "duration_ms": None,
    "input": {},
    "labels": {},
}


@pytest.mark.parametrize(("creator", "shown"), [("key:k1", "key:k1"), (None, "-")])
@pytest.mark.parametrize(
    ("kind", "name", "item"),
    [("projects", "demo", PROJECT), ("deployments", "dep_a", DEPLOYMENT), ("runs", "run_a", RUN)],
)
def test_details_have_who_created_it(service, capsys, kind, name, item, creator, shown):
    data = {**item, "created_by": creator}
    service.responses["GET", f"/v1/{kind}/{name}"] = [(200, {}, {"data": data})]
    assert call([kind, "show", name]) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert [line[2:] for line in lines if line[:2] == ["CREATED", "BY"]] == [[shown]]


@pytest.mark.parametrize("count", ["-1", "21", "many"])
def test_a_wrong_number_of_waiting_pods_is_refused_without_a_call(service, count):
    assert call(["projects", "set", "demo", "--warm-builds", count]) == 2
    assert service.requests == []


@pytest.mark.parametrize(
    ("path", "arguments", "result"),
    [
        ("projects/demo", ["projects", "delete", "demo", "--yes"], {"name": "demo"}),
        ("api-keys/k1", ["keys", "revoke", "k1"], {"id": "k1"}),
        ("projects/demo/env/A", ["env", "rm", "A", "-p", "demo"], {"name": "A"}),
        ("projects/demo/schedules/s", ["schedules", "rm", "s", "-p", "demo"], {"name": "s"}),
    ],
)
def test_a_removal_prints_its_result(service, capsys, path, arguments, result):
    service.responses["DELETE", f"/v1/{path}"] = [(204, {}, b"")]
    assert call(["--json", *arguments]) == 0
    assert json.loads(capsys.readouterr().out) == result
    assert call(arguments) == 0
    assert next(iter(result.values())) in capsys.readouterr().out


def test_a_login_without_an_address_does_not_print_the_key(monkeypatch, capsys):
    monkeypatch.delenv("CREWYARD_URL", raising=False)
    monkeypatch.setattr("sys.stdin", io.StringIO("crw_id_secret\n"))
    assert call(["login"]) == 2
    printed = capsys.readouterr().err
    assert "--url" in printed and "secret" not in printed


@pytest.mark.parametrize("arguments", [["env", "list", "-p", ""], ["run", ""]])
def test_an_empty_project_is_not_the_default_one(service, monkeypatch, capsys, arguments):
    monkeypatch.setenv("CREWYARD_PROJECT", "demo")
    assert call(arguments) == 2
    assert service.requests == []
    assert "no project is given" in capsys.readouterr().err


def test_an_import_that_fails_halfway_prints_what_is_set(service, tmp_path, capsys):
    (tmp_path / ".env").write_text("A=1\nB=2\nC=3\n")
    refusal = {"error": {"code": "invalid_request", "message": "B is reserved", "details": {}}}
    service.responses["PUT", "/v1/projects/demo/env/A"] = [(200, {}, {"data": {"name": "A"}})]
    service.responses["PUT", "/v1/projects/demo/env/B"] = [(400, {}, refusal)]
    assert call(["env", "import", str(tmp_path / ".env"), "-p", "demo"]) == 3
    printed = capsys.readouterr()
    assert printed.out == "A is set\n" and "B is reserved" in printed.err


NOT_FOUND = 404, {}, {"error": {"code": "not_found", "message": "project 'typo' not found", "details": {}}}


@pytest.mark.parametrize("kind", ["deployments", "runs"])
def test_an_empty_list_of_a_project_that_does_not_exist_is_an_error(service, capsys, kind):
    service.responses["GET", f"/v1/{kind}"] = [(200, {}, {"data": [], "pagination": {**PAGE, "total": 0}})]
    service.responses["GET", "/v1/projects/typo"] = [NOT_FOUND]
    assert call([kind, "list", "-p", "typo"]) != 0
    assert "project 'typo' not found" in capsys.readouterr().err


@pytest.mark.parametrize("project", [(200, {}, {"data": {"active_deployment_id": "dep_b"}}), NOT_FOUND])
def test_inputs_of_a_project_whose_name_is_like_a_deployment(service, project):
    service.responses["GET", "/v1/projects/dep-a"] = [project]
    found = (200, {}, {"data": {"schema": {}, "declared": False}})
    for identifier in ("dep-a", "dep_b"):
        service.responses["GET", f"/v1/deployments/{identifier}/inputs"] = [found]
    assert call(["inputs", "dep-a"]) == 0
    assert service.requests[-1][1] == f"/v1/deployments/{'dep-a' if project == NOT_FOUND else 'dep_b'}/inputs"


def test_a_list_of_deployments_marks_previews(service, capsys):
    row = {"created_at": "2026-11-20T10:00:00Z", "activated_at": None, "message": "", "status": "superseded"}
    rows = [{**row, "id": "dep_a", "is_preview": True}, {**row, "id": "dep_b"}]
    service.responses["GET", "/v1/deployments"] = [
        (200, {}, {"data": rows, "pagination": {**PAGE, "total": 2}})
    ]
    assert call(["deployments", "list", "-p", "demo"]) == 0
    listed = {
        line.split()[0]: line for line in capsys.readouterr().out.splitlines() if line.startswith("dep_")
    }
    assert "superseded, preview" in listed["dep_a"]
    assert "superseded" in listed["dep_b"] and "preview" not in listed["dep_b"]


def test_a_key_for_a_project_that_does_not_exist_is_made_with_a_warning(service, capsys):
    service.responses["POST", "/v1/api-keys"] = [
        (201, {}, {"data": {"id": "a", "projects": ["typo"], "key": "crw_a"}})
    ]
    service.responses["GET", "/v1/projects/typo"] = [NOT_FOUND]
    service.responses["GET", "/v1/projects/demo"] = [(200, {}, {"data": {"name": "demo"}})]
    assert call(["keys", "create", "ci", "--scope", "run", "--for", "typo", "--for", "demo"]) == 0
    printed = " ".join(capsys.readouterr().err.split())
    assert "There is no project typo yet" in printed and "project demo" not in printed


def audit_log(*paths):
    """Return records as the service shows them, in a chain."""
    records, previous = [], audit_chain.FIRST_PREVIOUS
    for number, path in enumerate(paths, 1):
        record = {"number": number, "path": path, "outcome": "accepted", "previous": previous}
        previous = audit_chain.digest(record)
        records.append({**record, "hash": previous})
    return records


def json_lines(records):
    return "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records).encode()


def offer_audit(service, body, kind="application/x-ndjson"):
    caller = {"scopes": ["admin"], "projects": []}
    service.responses["GET", "/v1/whoami"] = [(200, {}, {"data": caller})]
    service.responses["GET", "/v1/audit"] = [(200, {"Content-Type": kind}, body)]


def test_a_record_with_any_character_is_one_line(service, tmp_path, capsys):
    records = audit_log("/v1/a", "/v1/b\u2028c\x85d\u2029\x1ce\u00e9", "/v1/##[f")
    offer_audit(service, json_lines(records))
    assert call(["audit", "--verify"]) == 0
    assert "3 records are intact" in capsys.readouterr().out
    assert call(["audit", "--export"]) == 0
    text = capsys.readouterr().out
    assert [json.loads(line) for line in text.split("\n")[:-1]] == records
    export = tmp_path / "audit.jsonl"
    for end in ("\n", "\r\n"):
        export.write_bytes(text.replace("\n", end).encode())
        assert call(["audit", "--verify", "--file", str(export)]) == 0
    export.write_text(text, "utf-16")
    assert call(["audit", "--verify", "--file", str(export)]) == 2
    assert "is not UTF-8 text" in capsys.readouterr().err


@pytest.mark.parametrize("option", ["--export", "--verify"])
@pytest.mark.parametrize(
    ("kind", "body", "message"),
    [
        ("text/html", b"<html>Sign in</html>\n", "text/html"),
        ("application/x-ndjson", json_lines(audit_log("/v1/a", "/v1/b"))[:-9], "inside a record"),
    ],
)
def test_what_is_not_the_whole_audit_log_is_an_error(service, capsys, option, kind, body, message):
    offer_audit(service, body, kind)
    assert call(["audit", option]) == 3
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("missing", [0, 1])
def test_a_part_of_the_audit_log_is_not_called_changed(tmp_path, capsys, missing):
    records = audit_log("/v1/a", "/v1/b", "/v1/c")
    del records[missing]
    export = tmp_path / "audit.jsonl"
    export.write_bytes(json_lines(records))
    assert call(["audit", "--verify", "--file", str(export)]) == 1
    assert "has a part of the audit log, or" in capsys.readouterr().err


@pytest.mark.parametrize(
    "changed",
    [
        {"number": "one"},
        {"number": 1.5},
        {"number": None},
        {"previous": 7},
        {"outcome": ["accepted"]},
        {"outcome": "pruned"},
        {"outcome": "pruned", "actor": "service", "target": "x", "code": None},
    ],
)
def test_a_wrong_field_of_an_audit_record_is_reported(tmp_path, capsys, changed):
    record = {**audit_log("/v1/a", "/v1/b")[1], **changed}
    export = tmp_path / "audit.jsonl"
    export.write_bytes(json_lines([{**record, "hash": audit_chain.digest(record)}]))
    assert call(["audit", "--verify", "--file", str(export)]) == 1
    assert "log was changed" in capsys.readouterr().err


def test_a_deletion_with_a_lost_response_succeeds(service):
    path = "/v1/projects/demo"
    service.responses["DELETE", path] = [failure(503), failure(404)]
    with Client() as client:
        client.delete_project("demo")
        with pytest.raises(CrewyardError):
            client.delete_project("demo")


def test_a_deletion_that_was_refused_first_does_not_hide_a_wrong_name(service, capsys):
    service.responses["DELETE", "/v1/projects/typo"] = [failure(429), NOT_FOUND]
    assert call(["projects", "delete", "typo", "--yes"]) == 3
    assert "project 'typo' not found" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (httpx.ConnectError, 3),
        (httpx.ConnectTimeout, 3),
        (httpx.PoolTimeout, 3),
        (httpx.ProxyError, 3),
        (httpx.ReadTimeout, 0),
        (httpx.ReadError, 0),
        (httpx.WriteError, 0),
        (httpx.RemoteProtocolError, 0),
    ],
)
def test_a_deletion_that_was_not_sent_first_does_not_hide_a_wrong_name(service, monkeypatch, error, code):
    failures, send = [error("broken")], httpx.HTTPTransport.handle_request

    def handle_request(transport, request):
        if failures:
            raise failures.pop()
        return send(transport, request)

    monkeypatch.setattr(httpx.HTTPTransport, "handle_request", handle_request)
    service.responses["DELETE", "/v1/projects/typo"] = [NOT_FOUND]
    assert call(["projects", "delete", "typo", "--yes"]) == code


def test_a_run_is_retried_with_one_key_and_a_project_is_not(service):
    service.responses["POST", "/v1/runs"] = service.responses["POST", "/v1/projects"] = [failure(503)]
    with Client() as client:
        for start in (lambda: client.start_run("demo"), lambda: client.create_project("demo")):
            with pytest.raises(Unavailable):
                start()
    keys = [headers.get("Idempotency-Key") for _, path, headers in service.requests if path == "/v1/runs"]
    assert len(keys) == retry.MAX_ATTEMPTS
    assert len(set(keys)) == 1
    assert [path for _, path, _ in service.requests].count("/v1/projects") == 1


def test_a_wait_and_a_redirect_are_reported(service, capsys, monkeypatch):
    service.responses["GET", "/v1/runs/run_a"] = [
        (
            429,
            {"Retry-After": "58"},
            {"error": {"code": "rate_limited", "message": "too many", "details": {}}},
        ),
        (301, {"Location": "https://elsewhere.example.org/"}, b""),
    ]
    monkeypatch.setattr(retry, "pause", lambda _failures, retry_after: retry_after)
    monkeypatch.setattr("crewyard.client.time.sleep", lambda _seconds: None)
    assert call(["runs", "show", "run_a"]) == 3
    printed = capsys.readouterr().err
    assert "too many; retrying in 58 s" in printed
    assert "redirects to https://elsewhere.example.org/" in printed


def test_html_instead_of_a_stream_fails_without_retry(service):
    service.responses["GET", "/v1/runs/run_a/events"] = [(200, {"Content-Type": "text/html"}, b"<html>")]
    with Client() as client, pytest.raises(CrewyardError, match="text/html"):
        list(client.follow_run("run_a"))
    assert len(service.requests) == 1


def test_html_instead_of_json_or_a_log_is_an_error(service):
    page = [(200, {"Content-Type": "text/html; charset=utf-8"}, b"<html>Sign in</html>")]
    service.responses = {("GET", path): page for path in ("/v1/runs", "/v1/runs/run_a/logs")}
    with Client() as client:
        with pytest.raises(CrewyardError, match="check CREWYARD_URL"):
            client.list_runs()
        with pytest.raises(CrewyardError, match="text/html"):
            client.read_run_log("run_a")


def test_a_stream_resumes_after_the_last_event(service):
    service.responses["GET", "/v1/runs/run_a/events"] = [
        stream((1, "run.started", {})),
        failure(503),
        stream((2, "run.completed", {})),
    ]
    with Client() as client:
        assert [event["id"] for event in client.follow_run("run_a")] == [1, 2]
    assert [headers.get("Last-Event-ID") for _, _, headers in service.requests] == [None, "1", "1"]


def test_a_run_ends_with_its_tokens_by_model(service, capsys):
    usage = {"model": "m", "prompt_tokens": 1200, "completion_tokens": 30}
    run = {"id": "run_a", "status": "pending"}
    service.responses["POST", "/v1/runs"] = [(201, {}, {"data": run})]
    service.responses["GET", "/v1/runs/run_a"] = [(200, {}, {"data": {**run, "status": "succeeded"}})]
    events = [stream((1, "usage", usage), (2, "usage", usage), (3, "run.completed", {}))]
    service.responses["GET", "/v1/runs/run_a/events"] = events
    assert call(["run", "demo"]) == 0
    assert "tokens: m 2,400 in, 60 out" in capsys.readouterr().err.splitlines()


MODELS = {
    "a": {"prompt_tokens": 1200, "completion_tokens": 30, "cost": 0.0123},
    "b": {"prompt_tokens": 7, "completion_tokens": 0, "cost": None},
}


def test_a_run_is_shown_with_its_models(service, capsys):
    used = {"prompt_tokens": 1207, "completion_tokens": 30, "artifact_bytes": 0, "cost": 2, "currency": "USD"}
    run = {"id": "run_a", "input": {}, "labels": {}, "duration_ms": 5, "status": "succeeded"}
    runs = [{**run, "usage": usage} for usage in (None, used, {**used, "models": MODELS})]
    service.responses["GET", "/v1/runs/run_a"] = [(200, {}, {"data": one}) for one in runs]
    for _ in runs[:2]:
        assert call(["runs", "show", "run_a"]) == 0
        assert "MODELS" not in capsys.readouterr().out
    assert call(["runs", "show", "run_a"]) == 0
    lines = [line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines()]
    assert ["MODELS", "a 1,200 in, 30 out, 0.0123 USD; b 7 in, 0 out"] in lines


@pytest.mark.parametrize("sent", [{}, {"models": {}}, {"models": MODELS}])
def test_usage_is_shown_by_model(service, capsys, sent):
    day = {"runs": 1, "run_seconds": 1, "build_seconds": 0, "artifact_bytes": 0, "cost": 2}
    total = {**day, "prompt_tokens": 1207, "completion_tokens": 30, "cost": 0.0123}
    report = {"currency": "USD", "days": [], "total": total, **sent}
    service.responses["GET", "/v1/projects/demo/usage"] = [(200, {}, {"data": report})]
    assert call(["usage", "-p", "demo"]) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert lines[1][-2:] == ["0.0123", "USD"]
    shown = [["a", "1200", "30", "0.0123", "USD"], ["b", "7", "0", "-"]] if sent.get("models") else []
    assert lines[3:] == shown


def test_an_event_that_was_cut_off_is_read_again(service):
    status, headers, whole = stream((1, "log", {"message": "one"}), (2, "log", {"message": "two"}))
    service.responses["GET", "/v1/runs/run_a/events"] = [
        (status, headers, whole[:-10]),
        stream((2, "log", {"message": "two"}), (3, "run.completed", {})),
    ]
    with Client() as client:
        assert [event["id"] for event in client.follow_run("run_a")] == [1, 2, 3]
    assert [headers.get("Last-Event-ID") for _, _, headers in service.requests] == [None, "1"]


def test_all_events_of_a_run_are_two_requests(service, capsys):
    path = "/v1/runs/run_a/events"
    event = {"id": 1, "type": "log", "data": {"message": "one"}}
    service.responses["GET", path] = [
        (200, {}, {"data": [event], "pagination": {**PAGE, "has_more": True}}),
        stream(
            (1, "log", {"message": "one"}), (2, "log", {"message": "two"}), (3, "log", {"message": "late"})
        ),
    ]
    assert call(["logs", "--events", "run_a"]) == 0
    assert capsys.readouterr().out == "one\ntwo\n"


def test_the_build_log_is_json_on_request(service, capsys):
    service.responses["GET", "/v1/deployments/dep_a/logs"] = [
        (200, {"Content-Type": "text/plain"}, b"a\nb\n")
    ]
    assert call(["--json", "logs", "dep_a"]) == 0
    assert json.loads(capsys.readouterr().out) == {"message": "a\nb\n"}


def test_a_run_without_a_final_event_is_not_a_success(service, capsys):
    service.responses["POST", "/v1/runs"] = [(201, {}, {"data": {"id": "run_a", "status": "pending"}})]
    service.responses["GET", "/v1/runs/run_a/events"] = [(204, {}, b"")]
    service.responses["GET", "/v1/runs/run_a"] = [(200, {}, {"data": {"id": "run_a", "status": "running"}})]
    assert call(["run", "demo"]) == 3
    assert "run_a is running" in capsys.readouterr().err


def artifact(name, body):
    return {
        "name": name, "size": len(body), "sha256": hashlib.sha256(body).hexdigest(), "partial": False,
        "content_type": "text/plain", "created_at": "2026-11-21T10:00:00Z",
    }  # fmt: skip


def test_a_download_is_retried_while_the_service_is_unavailable(service, tmp_path):
    base = "/v1/runs/run_a/artifacts"
    service.responses["GET", base] = [(200, {}, {"data": [artifact("a.txt", b"text")], "pagination": PAGE})]
    whole = (200, {"Content-Type": "text/plain"}, b"text")
    service.responses["GET", f"{base}/a.txt"] = [
        failure(503),
        (200, {"Content-Type": "text/plain"}, b"te"),
        whole,
    ]
    assert call(["artifacts", "run_a", "-d", str(tmp_path)]) == 0
    assert (tmp_path / "a.txt").read_bytes() == b"text"
    assert list(tmp_path.iterdir()) == [tmp_path / "a.txt"]


def test_no_file_is_written_through_a_link(service, tmp_path, capsys):
    base = "/v1/runs/run_a/artifacts"
    service.responses["GET", base] = [
        (200, {}, {"data": [artifact("out/deep/a.txt", b"x")], "pagination": PAGE})
    ]
    elsewhere, here = tmp_path / "elsewhere", tmp_path / "here"
    elsewhere.mkdir()
    here.mkdir()
    (here / "out").symlink_to(elsewhere)
    assert call(["artifacts", "run_a", "-d", str(here)]) == 2
    assert "is a link" in capsys.readouterr().err
    assert list(elsewhere.iterdir()) == []


def test_two_artifacts_never_overwrite_each_other(service, tmp_path, capsys, monkeypatch):
    base = "/v1/runs/run_a/artifacts"
    both = [artifact("A.txt", b"one"), artifact("a.txt", b"two")]
    service.responses["GET", base] = [(200, {}, {"data": both, "pagination": PAGE})]
    service.responses["GET", f"{base}/A.txt"] = [(200, {}, b"one")]
    service.responses["GET", f"{base}/a.txt"] = [(200, {}, b"two")]
    # What a file system does that does not tell upper from lower case.
    target = ArtifactDirectory.target
    monkeypatch.setattr(ArtifactDirectory, "target", lambda self, name: target(self, name.lower()))
    assert call(["artifacts", "run_a", "-d", str(tmp_path)]) == 2
    assert "same name here" in capsys.readouterr().err
    assert (tmp_path / "a.txt").read_bytes() == b"one"


def offer(service, files):
    base = "/v1/runs/run_a/artifacts"
    rows = [artifact(name, body) for name, body in files.items()]
    service.responses["GET", base] = [(200, {}, {"data": rows, "pagination": PAGE})]
    for name, body in files.items():
        service.responses["GET", f"{base}/{quote(name)}"] = [(200, {}, body)]


@pytest.mark.parametrize(
    ("names", "lost"), [(["a", "a/b", "c"], "a/b"), (["a/b", "a", "c"], "a"), (["a/b/c", "a/b", "c"], "a/b")]
)
@pytest.mark.parametrize("options", [[], ["--force"]])
def test_an_artifact_below_another_one_is_named(service, tmp_path, capsys, names, lost, options):
    offer(service, {name: name.encode() for name in names})
    assert call(["artifacts", "run_a", "-d", str(tmp_path), *options]) == 2
    assert f"the artifact {lost!r} cannot be written here" in capsys.readouterr().err
    kept = {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*") if path.is_file()}
    assert kept == set(names) - {lost}


@pytest.mark.parametrize("name", [*hostile_file_names.REPOSITORY, *hostile_file_names.OUTSIDE])
def test_a_hostile_name_is_refused_before_the_first_file(service, tmp_path, capsys, name):
    offer(service, {"a.txt": b"x", name: b"x"})
    assert call(["artifacts", "run_a", "-d", str(tmp_path / "here")]) == 2
    assert "cannot be written" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", hostile_file_names.WINDOWS)
def test_windows_reserves_more_names(tmp_path, name):
    with pytest.raises(CrewyardError, match="Windows"):
        ArtifactDirectory(tmp_path, False, windows=True).target(name)
    assert ArtifactDirectory(tmp_path, False, windows=False).target(name)


def test_harmless_names_are_downloaded(service, tmp_path):
    offer(service, {name: name.encode() for name in hostile_file_names.HARMLESS})
    assert call(["artifacts", "run_a", "-d", str(tmp_path)]) == 0
    for name in hostile_file_names.HARMLESS:
        assert (tmp_path / name).read_bytes() == name.encode()


def test_files_are_replaced_by_force_alone(service, tmp_path, capsys):
    offer(service, {"a.txt": b"new", "b.txt": b"new"})
    (tmp_path / "b.txt").write_text("mine")
    assert call(["artifacts", "run_a", "-d", str(tmp_path)]) == 2
    assert "--force" in capsys.readouterr().err
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"b.txt": "mine"}
    assert call(["artifacts", "run_a", "-d", str(tmp_path), "--force"]) == 0
    assert (tmp_path / "b.txt").read_text() == "new"


def test_an_interrupted_download_goes_on_with_the_other_files(service, tmp_path, capsys):
    offer(service, {"a.txt": b"one", "deep/b.txt": b"two", "c.txt": b"six"})
    assert call(["artifacts", "run_a", "a.txt", "deep/b.txt", "-d", str(tmp_path)]) == 0
    for name in ("a.txt", "deep/b.txt"):
        service.responses["GET", f"/v1/runs/run_a/artifacts/{name}"] = [failure(404)]
    capsys.readouterr()
    assert call(["artifacts", "run_a", "-d", str(tmp_path), "--json"]) == 0
    paths = [json.loads(line)["path"] for line in capsys.readouterr().out.splitlines()]
    assert paths == [str(tmp_path / name) for name in ("a.txt", "deep/b.txt", "c.txt")]
    (tmp_path / "deep/b.txt").write_bytes(b"mine"[:3])
    assert call(["artifacts", "run_a", "-d", str(tmp_path)]) == 2
    assert (tmp_path / "deep/b.txt").read_bytes() == b"min"


def test_a_link_is_no_file_to_write(service, tmp_path):
    offer(service, {"a.txt": b"new"})
    here, victim = tmp_path / "here", tmp_path / "victim"
    here.mkdir()
    (here / "a.txt").symlink_to(victim)  # points nowhere: to write there would make the victim
    assert call(["artifacts", "run_a", "-d", str(here)]) == 2
    assert not victim.exists()


def test_a_file_is_no_download_directory(service, tmp_path, capsys):
    offer(service, {"a.txt": b"new"})
    (tmp_path / "file").write_text("mine")
    assert call(["artifacts", "run_a", "-d", str(tmp_path / "file")]) == 2
    assert "file is a file; give another directory" in capsys.readouterr().err


def test_a_file_made_during_the_download_stays(tmp_path):
    downloads = ArtifactDirectory(tmp_path, False)
    path, part = downloads.target("a.txt"), tmp_path / "x.part"
    part.write_text("new")
    path.write_text("mine")
    with pytest.raises(CrewyardError, match="exists"):
        downloads.store(part, path, "a.txt")
    assert path.read_text() == "mine"


def accept_a_deployment(service, status):
    context = {"upload_url": f"{service.url}/put", "build_context_url": "x", "method": "PUT", "headers": {}}
    deployment = {"id": "dep_a", "project": "demo", "status": status, "message": ""}
    service.responses["POST", "/v1/uploads"] = [(201, {}, {"data": context})]
    service.responses["PUT", "/put"] = [(200, {}, {"data": {}})]
    service.responses["POST", "/v1/deployments"] = [(201, {}, {"data": deployment})]
    service.responses["GET", "/v1/deployments/dep_a/logs"] = [(204, {}, b"")]
    service.responses["GET", "/v1/deployments/dep_a"] = [(200, {}, {"data": deployment})]


@pytest.mark.parametrize(
    ("crew", "sent"),
    [("./main.py", "main.py"), ("a//b.py", "a/b.py"), ("main:f", "main:f"), ("writer", "writer")],
)
def test_a_crew_that_is_a_file_is_sent_as_the_service_takes_it(service, tmp_path, crew, sent):
    (tmp_path / "main.py").write_text("1")
    accept_a_deployment(service, "active")
    assert call(["deploy", str(tmp_path), "-p", "demo", "--no-wait", "--crew", crew]) == 0
    (body,) = (json.loads(body) for body in service.bodies if b"build_context_url" in body)
    assert body["crew"] == sent


def test_a_configuration_that_excludes_itself_is_sent(service, tmp_path, capsys):
    (tmp_path / "main.py").write_text("1")
    (tmp_path / "pylock.toml").write_text("")
    (tmp_path / "crew.toml").write_text('[build]\nexclude = ["*.toml"]\n')
    accept_a_deployment(service, "active")
    assert call(["deploy", str(tmp_path), "-p", "demo", "--no-wait"]) == 0
    assert "packed 2 files," in capsys.readouterr().err


SCHEDULE_PATH = "/v1/projects/demo/schedules"


@pytest.mark.parametrize(
    ("command", "method", "path"),
    [
        (["run", "demo", "--no-wait"], "POST", "/v1/runs"),
        (["rerun", "run_b", "--no-wait"], "POST", "/v1/runs/run_b/rerun"),
        (["schedules", "set", "daily", "-p", "demo", "--cron", "@daily"], "PUT", f"{SCHEDULE_PATH}/daily"),
    ],
)
def test_an_entrypoint_that_is_a_file_is_sent_as_a_path(service, command, method, path):
    page = {"data": [], "pagination": {"total": 0, "page": 1, "per_page": 100, "has_more": False}}
    service.responses["GET", SCHEDULE_PATH] = [(200, {}, page)]
    service.responses["GET", "/v1/runs/run_a"] = [(200, {}, {"data": RUN})]
    service.responses[method, path] = [(201, {}, {"data": RUN})]
    assert call([*command, "--entrypoint", "./main.py"]) == 0
    (body,) = (json.loads(body) for body in service.bodies if body)
    assert body["entrypoint"] == "main.py"


@pytest.mark.parametrize(("status", "named"), [("active", "demo"), ("superseded", "dep_a")])
def test_a_deploy_ends_with_the_command_to_run_it(service, tmp_path, capsys, status, named):
    (tmp_path / "main.py").write_text("1")
    accept_a_deployment(service, status)
    assert call(["deploy", str(tmp_path), "-p", "demo"]) == 0
    assert capsys.readouterr().err.splitlines()[-1] == f"Run it: crewyard run {named}"


class Terminal(io.StringIO):
    """Lines that a person types."""

    def isatty(self):
        return True


@pytest.mark.parametrize(
    ("exists", "typed", "name"),
    [(False, "\n\n", "tides-2"), (False, "demo\ny\n", "demo"), (True, "demo\n", "demo")],
)
def test_deploy_asks_for_a_project_and_remembers_it(
    service, tmp_path, monkeypatch, capsys, exists, typed, name
):
    directory = tmp_path / "Tides (2)"
    directory.mkdir()
    (directory / "main.py").write_text("1")
    accept_a_deployment(service, "active")
    found = (200, {}, {"data": {**PROJECT, "name": name}})
    service.responses["GET", f"/v1/projects/{name}"] = [found if exists else failure(404)]
    service.responses["POST", "/v1/projects"] = [(201, {}, {"data": {**PROJECT, "name": name}})]
    monkeypatch.delenv("CREWYARD_PROJECT", raising=False)
    monkeypatch.setattr("sys.stdin", Terminal(typed))
    assert call(["deploy", str(directory)]) == 0
    assert posted(service, "/v1/projects") == ([] if exists else [{"name": name}])
    assert (directory / ".crewyard/project").read_text() == f"{name}\n"
    assert (directory / ".crewyard/.gitignore").read_text() == "*\n"
    assert list(read_tree(directory)) == ["main.py"]
    monkeypatch.setattr("sys.stdin", io.StringIO())
    assert call(["deploy", str(directory)]) == 0
    assert [body["project"] for body in posted(service, "/v1/deployments")] == [name, name]


def test_deploy_creates_no_project_that_was_not_confirmed(service, tmp_path, monkeypatch):
    (tmp_path / "main.py").write_text("1")
    service.responses["GET", "/v1/projects/demo"] = [failure(404)]
    monkeypatch.delenv("CREWYARD_PROJECT", raising=False)
    monkeypatch.setattr("sys.stdin", Terminal("demo\nn\n"))
    assert call(["deploy", str(tmp_path)]) == 130
    assert not (tmp_path / ".crewyard").exists()


def test_a_long_subject_of_a_commit_is_cut_to_the_limit_of_the_api(service, tmp_path):
    (tmp_path / "main.py").write_text("1")
    commit = ["commit", "-m", "x" * 5000]
    for arguments in (["init"], ["add", "."], ["-c", "user.name=a", "-c", "user.email=a@b.c", *commit]):
        subprocess.run(["git", "-C", tmp_path, *arguments], check=True, capture_output=True)
    accept_a_deployment(service, "active")
    assert call(["deploy", str(tmp_path), "-p", "demo"]) == 0
    [body] = posted(service, "/v1/deployments")
    assert len(body["message"]) == CREATE["properties"]["message"]["maxLength"]


@pytest.mark.parametrize(
    ("url", "message"),
    [
        (
            "http://127.0.0.1:9/put",
            "http://127.0.0.1:9, where the service sent the client, cannot be reached",
        ),
        ("http://localhost:{port}/put", "localhost responded 403 without a message"),
    ],
)
def test_a_failed_upload_names_the_object_store(service, tmp_path, capsys, url, message):
    (tmp_path / "main.py").write_text("1")
    address = url.format(port=service.server.server_port)
    upload = {"upload_url": address, "build_context_url": "x", "method": "PUT", "headers": {}}
    service.responses["POST", "/v1/uploads"] = [(201, {}, {"data": upload})]
    service.responses["PUT", "/put"] = [(403, {"Content-Type": "application/xml"}, b"<Error/>")]
    assert call(["deploy", str(tmp_path), "-p", "demo"]) == 3
    assert message in capsys.readouterr().err


def test_the_default_directory_is_of_the_run(service, tmp_path, monkeypatch):
    offer(service, {"a.txt": b"x"})
    monkeypatch.chdir(tmp_path)
    assert call(["artifacts", "run_a", "--download"]) == 0
    assert (tmp_path / "artifacts-run_a/a.txt").read_bytes() == b"x"


def test_a_run_is_awaited_until_it_has_ended(service):
    states = [{"id": "run_a", "status": status} for status in ("pending", "running", "succeeded")]
    service.responses["GET", "/v1/runs/run_a"] = [(200, {}, {"data": state}) for state in states]
    with Client() as crewyard:
        assert crewyard.runs.wait("run_a")["status"] == "succeeded"
    assert len(service.requests) == 3


def test_a_run_is_awaited_through_an_update_of_the_service(service):
    ended = (200, {}, {"data": {"id": "run_a", "status": "succeeded"}})
    service.responses["GET", "/v1/runs/run_a"] = [*[failure(503)] * 4 * retry.MAX_ATTEMPTS, ended]
    with Client() as crewyard:
        assert crewyard.wait_run("run_a")["status"] == "succeeded"
    service.requests.clear()
    service.responses["GET", "/v1/runs/run_a"] = [failure(404)]
    with Client() as crewyard, pytest.raises(NotFound):
        crewyard.wait_run("run_a")
    service.responses["GET", "/v1/runs/run_a"] = [failure(503)]
    with Client() as crewyard, pytest.raises(Unavailable):
        crewyard.wait_run("run_a", timeout=0)
    assert len(service.requests) == 1 + retry.MAX_ATTEMPTS


def test_waiting_for_a_run_ends_after_the_timeout(service):
    service.responses["GET", "/v1/runs/run_a"] = [(200, {}, {"data": {"id": "run_a", "status": "running"}})]
    with Client() as crewyard, pytest.raises(TimeoutError, match="run_a has not ended after 0 s"):
        crewyard.runs.wait("run_a", timeout=0)


def test_the_preference_to_wait_is_sent(service):
    service.responses["POST", "/v1/runs"] = [(201, {}, {"data": {"id": "run_a", "status": "succeeded"}})]
    with Client() as crewyard:
        crewyard.start_run("demo", wait=30)
    assert service.requests[0][2]["Prefer"] == "wait=30"


@pytest.mark.parametrize("value", [object(), {1, 2}, float("nan"), "\ud800"])
def test_an_input_that_is_not_json_is_a_wrong_value(value):
    with Client("http://127.0.0.1:9", "crw_x") as client, pytest.raises(WrongValue, match=r"JSON|UTF-8"):
        client.start_run("demo", {"topic": value})
