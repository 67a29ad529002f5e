"""The synchronous client is generated from the asynchronous one; the types match the OpenAPI document."""

import re
import subprocess
import sys
import types
import typing
from pathlib import Path

import pytest

from api.openapi.document import document
from api.openapi.routes import OPERATIONS
from crewyard import models

CLIENT = Path(__file__).parents[3] / "client"
DOCUMENT = document(OPERATIONS, "https://crews.example.org")
NAMES = sorted(
    name
    for name, found in vars(models).items()
    if typing.is_typeddict(found) and found.__module__ == models.__name__
)


def test_the_synchronous_client_is_up_to_date(monkeypatch):
    monkeypatch.syspath_prepend(str(CLIENT))
    unasync = __import__("unasync")
    source = (CLIENT / "crewyard" / "async_client.py").read_text()
    generated = (CLIENT / "crewyard" / "client.py").read_text()
    assert unasync.synchronous(source) == generated, "run `python3 client/unasync.py`"
    assert not re.search(r"async|await", generated.partition("\n")[2])


def schema(name):
    return DOCUMENT["components"]["schemas"][name]


@pytest.mark.parametrize("name", NAMES)
def test_types_have_the_keys_of_the_schema(name):
    found, kind = schema(name), getattr(models, name)
    assert set(found["properties"]) == set(typing.get_type_hints(kind))
    assert set(found["required"]) == set(kind.__required_keys__)


@pytest.mark.parametrize("name", NAMES)
def test_types_allow_null_and_lists_like_the_schema(name):
    hints = typing.get_type_hints(getattr(models, name))
    for field, described in schema(name)["properties"].items():
        kinds = described.get("type")
        if kinds is None or hints[field] is typing.Any:
            continue
        kinds = {kinds} if isinstance(kinds, str) else set(kinds)
        hint = hints[field]
        union = isinstance(hint, types.UnionType) or typing.get_origin(hint) is typing.Union
        parts = set(typing.get_args(hint)) if union else {hint}
        assert ("null" in kinds) == (type(None) in parts), field
        assert ("array" in kinds) == any(typing.get_origin(part) is list for part in parts), field


def test_every_response_schema_has_a_type():
    schemas = {
        reference.rpartition("/")[2]
        for reference in re.findall(r"#/components/schemas/\w+", str(_responses()))
    }
    known = {"ProjectName", "DeploymentId", "RunId", "Pagination", "Error", "Failure", "UploadStored"}
    assert schemas - known <= set(NAMES)


def _responses():
    for path in DOCUMENT["paths"].values():
        for operation in path.values():
            if isinstance(operation, dict) and "responses" in operation:
                yield [found for code, found in operation["responses"].items() if code.startswith("2")]


def test_the_client_does_not_import_the_service():
    service = ("api", "controller", "crds", "kopf", "kubernetes", "aiohttp")
    program = f"import crewyard, sys; print([n for n in sys.modules if n.split('.')[0] in {service!r}])"
    result = subprocess.run(
        [sys.executable, "-c", program],
        cwd=CLIENT,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert result.stdout.strip() == "[]"
