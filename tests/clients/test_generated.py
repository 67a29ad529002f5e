"""The generated files are those of the API as it is, and what is written by hand fits them."""

import json
import re
import tomllib

import pytest

from clients import generate
from clients.document import for_clients, for_go
from tests.clients.conftest import ROOT, run

CLIENTS = ROOT / "clients"


def test_what_is_committed_is_what_make_clients_makes(sources, tmp_path):
    generate.generate(tmp_path, sources)
    stale = [
        name for name in generate.MADE if (tmp_path / name).read_bytes() != (CLIENTS / name).read_bytes()
    ]
    assert stale == [], "run `make clients` and commit what it changes"


def test_the_go_client_passes_its_own_tests():
    assert run("gofmt", "-l", ".", cwd=CLIENTS / "go") == ""
    run("go", "vet", "./...", cwd=CLIENTS / "go", seconds=540)
    assert "ok" in run("go", "test", "./...", cwd=CLIENTS / "go", seconds=540)


def test_the_typescript_client_passes_its_own_tests(sources):
    assert "# fail 0" in run("node", "--test", "--test-reporter=tap", "test/stream.test.mjs", cwd=sources)


def test_the_clients_have_the_version_of_the_service():
    with (ROOT / "pyproject.toml").open("rb") as file:
        version = tomllib.load(file)["project"]["version"]
    package = json.loads((CLIENTS / "typescript" / "package.json").read_text())
    lock = json.loads((CLIENTS / "typescript" / "package-lock.json").read_text())
    assert package["version"] == lock["version"] == version
    assert f'const Version = "{version}"' in (CLIENTS / "go" / "crewyard.go").read_text()


def test_the_lock_file_names_hashes_and_no_addresses():
    packages = json.loads((CLIENTS / "typescript" / "package-lock.json").read_text())["packages"]
    assert all("resolved" not in one for one in packages.values())
    assert all("integrity" in one for name, one in packages.items() if name)


@pytest.mark.parametrize(
    ("file", "pattern"),
    [("typescript/src/events.ts", r'^  "?([a-z.]+)"?: (?:\{|Ended)'), ("go/events.go", r' = "([a-z.]+)"$')],
)
def test_each_client_knows_every_type_of_event(file, pattern):
    page = (ROOT / "docs" / "crew.md").read_text()
    said = re.findall(r"^\| `((?:agent|tool)\.[a-z]+|usage)`", page, re.MULTILINE)
    known = set(re.findall(pattern, (CLIENTS / file).read_text(), re.MULTILINE))
    assert len(said) == 7 and known == {*said, *LIFE}


LIFE = {"run.started", "run.completed", "run.failed", "run.canceled", "log", "artifact"}
"""What every run can say, whatever its crew is."""


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


def test_the_clients_are_made_of_what_clients_call():
    found = for_clients(DOCUMENT)
    assert list(found["paths"]) == ["/v1/runs/{id}/events"]
    item = found["paths"]["/v1/runs/{id}/events"]
    assert set(item) == {"parameters", "get"}
    assert item["get"]["operationId"] == "list_events" and "parameters" not in item["get"]
    answers = item["get"]["responses"]
    assert set(answers) == {"200", "default"}
    assert answers["200"] == {
        "description": "Events.",
        "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Event"}}},
    }
    assert set(found["components"]["schemas"]) == {"Event", "Size", "Error"}
    assert found["components"]["schemas"]["Event"]["properties"]["method"] == {
        "const": "PUT",
        "type": "string",
    }


def test_go_takes_a_number_or_a_text_as_it_comes():
    assert for_go(DOCUMENT)["components"]["schemas"]["Size"] == {"description": "Much."}


def test_go_loses_nothing_of_a_number_or_an_output():
    run = {"properties": {"output": {"description": "What came."}, "cost": {"type": ["number", "null"]}}}
    assert for_go({"schemas": {"Run": run}})["schemas"]["Run"]["properties"] == {
        "output": {"description": "What came.", "x-go-type": "json.RawMessage"},
        "cost": {"type": ["number", "null"], "format": "double"},
    }
