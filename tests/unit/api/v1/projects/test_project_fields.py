"""Fields of projects that the API checks and shows by the schema of the kind."""

from collections.abc import Iterator

import pytest
from jsonschema import Draft202012Validator

from api.v1.projects.schema import PATCH


async def test_waiting_builders_are_shown(testbed):
    await testbed.add_project("warm", {"build": {"warm": 2}})
    await testbed.add_project("cold")
    assert (await testbed.get("/v1/projects/warm"))["data"]["build"] == {"warm": 2}
    assert not (await testbed.get("/v1/projects/cold"))["data"]["build"]


@pytest.mark.parametrize("warm", [-1, 21, 1.5, "2", True])
@pytest.mark.parametrize(
    ("method", "path", "more"),
    [("POST", "/v1/projects", {"name": "crew"}), ("PATCH", "/v1/projects/demo", {})],
)
async def test_a_wrong_number_of_waiting_builders_is_refused(testbed, method, path, more, warm):
    await testbed.add_project("demo")
    status, answer, _ = await testbed.call(method, path, {**more, "build": {"warm": warm}})
    assert (status, answer["error"]["details"]["field"]) == (400, "build.warm")


def _paths(schema: dict, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    for name, field in (schema.get("properties") or {}).items():
        yield (*path, name)
        yield from _paths(field, (*path, name))
    if isinstance(schema.get("additionalProperties"), dict):
        yield (*path, "any")


@pytest.mark.parametrize("path", list(_paths(PATCH)), ids=".".join)
def test_null_in_a_merge_patch_removes_each_field(path):
    body = None
    for name in reversed(path):
        body = {name: body}
    assert [error.message for error in Draft202012Validator(PATCH).iter_errors(body)] == []
