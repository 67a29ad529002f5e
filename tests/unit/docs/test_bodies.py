"""The API accepts the request bodies shown in docs/api.md."""

import json

import pytest
from jsonschema import Draft202012Validator
from referencing import Registry, Resource
from referencing.jsonschema import DRAFT202012

from api.openapi.document import document
from api.openapi.routes import OPERATIONS
from tests.testbed.documentation import DOCS, blocks

DOCUMENT = document(OPERATIONS, "https://crewyard.example.com")
ANY = "https://crewyard.example.com/openapi.json"


def example_bodies():
    page = (DOCS / "api.md").read_text()
    [block] = [candidate for candidate in blocks(page) if candidate.language == "json"]
    for call, body in json.loads(block.text).items():
        method, path = call.partition(",")[0].split()
        yield pytest.param(method.lower(), path.replace("{VAR}", "{variable}"), body, id=call)


@pytest.mark.parametrize(("method", "path", "body"), list(example_bodies()))
def test_a_body_of_the_page_is_valid(method, path, body):
    [operations] = [
        item for name, item in DOCUMENT["paths"].items() if name == path or shape(name) == shape(path)
    ]
    schema = operations[method]["requestBody"]["content"]["application/json"]["schema"]
    registry = Registry().with_resource(ANY, Resource(DOCUMENT, DRAFT202012))
    full_schema = {
        "$id": ANY,
        **DOCUMENT,
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **schema,
    }
    assert [
        error.message for error in Draft202012Validator(full_schema, registry=registry).iter_errors(body)
    ] == []


def shape(path):
    """Return a path independent of its parameters' names."""
    return ["{}" if part.startswith("{") else part for part in path.split("/")]
