"""The generated files match the API, and the hand-written code matches the generated files."""

import json
import re
import tomllib

import pytest

from clients import generate
from clients.document import for_clients, for_go
from tests.clients.conftest import ROOT, run

CLIENTS = ROOT / "clients"


def test_the_committed_files_are_up_to_date(sources, tmp_path):
    """Slow: runs the generators of all clients."""
    generate.generate(tmp_path, sources)
    stale = [
        name
        for name in generate.GENERATED_FILES
        if (tmp_path / name).read_bytes() != (CLIENTS / name).read_bytes()
    ]
    assert stale == [], "run `make clients` and commit what it changes"


@pytest.mark.nightly
def test_the_go_client_passes_its_own_tests():
    assert run("gofmt", "-l", ".", cwd=CLIENTS / "go") == ""
    run("go", "vet", "./...", cwd=CLIENTS / "go", seconds=540)
    assert "ok" in run("go", "test", "./...", cwd=CLIENTS / "go", seconds=540)


@pytest.mark.nightly
def test_the_typescript_client_passes_its_own_tests(sources):
    assert "# fail 0" in run("node", "--test", "--test-reporter=tap", "test/stream.test.mjs", cwd=sources)


def test_the_clients_have_the_version_of_the_service():
    with (ROOT / "pyproject.toml").open("rb") as file:
        version = tomllib.load(file)["project"]["version"]
    package = json.loads((CLIENTS / "typescript" / "package.json").read_text())
    lock = json.loads((CLIENTS / "typescript" / "package-lock.json").read_text())
    assert package["version"] == lock["version"] == version
    assert f'const Version = "{version}"' in (CLIENTS / "go" / "crewyard.go").read_text()


def test_the_lock_file_has_hashes_and_no_urls():
    packages = json.loads((CLIENTS / "typescript" / "package-lock.json").read_text())["packages"]
    assert all("resolved" not in package_ for package_ in packages.values())
    assert all("integrity" in package_ for name, package_ in packages.items() if name)


@pytest.mark.parametrize(
    ("file", "pattern"),
    [("typescript/src/events.ts", r'^  "?([a-z.]+)"?: (?:\{|Ended)'), ("go/events.go", r' = "([a-z.]+)"$')],
)
def test_each_client_supports_every_event_type(file, pattern):
    page = (ROOT / "docs" / "crew.md").read_text()
    documented = re.findall(r"^\| `((?:agent|tool)\.[a-z]+|usage)`", page, re.MULTILINE)
    supported = set(re.findall(pattern, (CLIENTS / file).read_text(), re.MULTILINE))
    assert len(documented) == 7 and supported == {*documented, *LIFE}


LIFE = {"run.started", "run.completed", "run.failed", "run.canceled", "log", "artifact"}
"""Event types of every run."""


_EVENT, _SIZE = {"$ref": "#/components/schemas/Event"}, {"$ref": "#/components/schemas/Size"}
DOCUMENT = {
    "openapi": "3.1.0",
    "paths": {
        "/healthz": {"get": {"operationId": "ask", "responses": {}}},
        "/v1/hooks/git/{name}": {"post": {"operationId": "take", "responses": {}}},
        "/v1/runs/{id}/events": {
            "parameters": [{"name": "id", "in": "path"}],
            "head": {"operationId": "follow_or_list_events_head", "responses": {}},
            "get": {
                "operationId": "follow_or_list_events",
                "parameters": [{"name": "Last-Event-ID", "in": "header"}],
                "responses": {
                    "200": {
                        "description": "Events.",
                        "headers": {"Link": {}},
                        "content": {
                            "text/event-stream": {"schema": {"type": "string"}},
                            "application/json": {"schema": _EVENT, "example": 1},
                        },
                    },
                    "404": {"description": "None."},
                },
            },
        },
    },
    "components": {
        "schemas": {
            "Event": {"properties": {"method": {"const": "PUT"}, "size": _SIZE}},
            "Size": {"description": "Much.", "anyOf": [{"type": "integer"}, {"type": "string"}]},
            "Error": {"type": "object"},
            "Hook": {"type": "object"},
        },
        "responses": {"Gone": {}},
        "securitySchemes": {"key": {"type": "http"}},
    },
}  # fmt: skip


def test_the_reduced_document_has_only_what_clients_call():
    reduced = for_clients(DOCUMENT)
    assert list(reduced["paths"]) == ["/v1/runs/{id}/events"]
    item = reduced["paths"]["/v1/runs/{id}/events"]
    assert set(item) == {"parameters", "get"}
    assert item["get"]["operationId"] == "list_events" and "parameters" not in item["get"]
    responses = item["get"]["responses"]
    assert set(responses) == {"200", "default"}
    assert responses["200"] == {
        "description": "Events.",
        "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Event"}}},
    }
    assert set(reduced["components"]["schemas"]) == {"Event", "Size", "Error"}
    assert reduced["components"]["schemas"]["Event"]["properties"]["method"] == {
        "const": "PUT",
        "type": "string",
    }


def test_a_union_of_number_and_text_has_no_type_in_go():
    assert for_go(DOCUMENT)["components"]["schemas"]["Size"] == {"description": "Much."}


def test_go_loses_nothing_of_a_number_or_an_output():
    run = {"properties": {"output": {"description": "What came."}, "cost": {"type": ["number", "null"]}}}
    assert for_go({"schemas": {"Run": run}})["schemas"]["Run"]["properties"] == {
        "output": {"description": "What came.", "x-go-type": "json.RawMessage"},
        "cost": {"type": ["number", "null"], "format": "double"},
    }
