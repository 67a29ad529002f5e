"""Schemas of answers: what a crew may use, what fits, and what a check costs at most."""

import sys
from collections.abc import Iterator

import pytest

from api import errors
from api.questions import answer_schema

PERSON = {
    "type": "object",
    "required": ["name"],
    "properties": {"name": {"$ref": "#/$defs/name"}, "age": {"type": "integer", "minimum": 0}},
    "$defs": {"name": {"type": "string", "minLength": 1}},
    "additionalProperties": False,
}
NODE = {"type": "object", "properties": {"next": {"$ref": "#"}}}
DOUBLING = {
    "$ref": "#/$defs/d0",
    "$defs": {
        **{f"d{n}": {"allOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 2} for n in range(60)},
        "d60": {"type": "string"},
    },
}
MANY = {"items": {"enum": [{"a": -n} for n in range(1000)]}}


@pytest.mark.parametrize(
    "schema",
    [
        {},
        PERSON,
        NODE,
        DOUBLING,
        {"properties": {"pattern": {"type": "string"}, "$ref": {"type": "string"}}},
        {"enum": [{"pattern": "x"}]},
    ],
)
def test_a_crew_may_use_schemas_without_regular_expressions_and_fetches(schema):
    assert answer_schema.schema_problem(schema) is None


@pytest.mark.parametrize(
    "schema",
    [
        {"patternProperties": {"a": {}}},
        {"items": [{"pattern": "a"}]},
        {"$defs": {"a": {"$dynamicRef": "#a"}}},
        {"anyOf": [{"$ref": "other.json"}]},
        {"$id": "http://192.0.2.1/"},
        {"properties": []},
    ],
)
def test_other_schemas_are_refused(schema):
    assert answer_schema.schema_problem(schema)


def test_a_long_list_of_types_is_refused_before_the_library_reads_it():
    problem = answer_schema.schema_problem({"items": {"type": [{"a": n} for n in range(8)]}})
    assert problem == "schema has a type with 8 names; there are 7"


@pytest.mark.parametrize(
    ("value", "schema", "choices", "field", "message"),
    [
        ({}, PERSON, None, "value.name", "the field value.name is required"),
        ({"name": ""}, PERSON, None, "value.name", "value.name must not be empty"),
        ({"name": "a", "age": -1}, PERSON, None, "value.age", "value.age must be at least 0"),
        ({"name": "a", "aeg": 1}, PERSON, None, "value.aeg", "did you mean age?"),
        (1, {"type": "string"}, None, "value", "value must be a string"),
        ([1, 1], {"uniqueItems": True}, None, "value", "value must not contain an entry twice"),
        ("c", None, ["a", "b"], "value", 'value must be one of "a", "b"'),
        (True, None, [1], "value", "value must be one of 1"),
        ("x", DOUBLING, None, "value", "takes too long"),
        ([{"a": n} for n in range(300)], MANY, None, "value", "takes too long"),
    ],
)
def test_an_answer_that_does_not_fit_gets_a_400_with_the_field(value, schema, choices, field, message):
    with pytest.raises(errors.HttpApiError) as refused:
        answer_schema.check_answer(value, schema, choices)
    assert (refused.value.status, refused.value.details["field"]) == (400, field)
    assert message in refused.value.message


@pytest.mark.parametrize("answer", [1, 1.0])
def test_a_whole_number_fits_a_choice_of_either_form(answer):
    """JavaScript and Kubernetes write 1.0 as 1."""
    for choices in ([0.5, 1.0], [0, 1]):
        answer_schema.check_answer(answer, None, choices)
    answer_schema.check_answer({"share": answer}, None, [{"share": 1.0}])


@pytest.fixture(params=[1, 100])
def stack(request: pytest.FixtureRequest) -> Iterator[None]:
    """The default recursion limit and a much larger one: what is refused does not depend on it."""
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(limit * request.param)
    yield
    sys.setrecursionlimit(limit)


def chain(levels: int) -> dict:
    return {"next": chain(levels - 1)} if levels else {}


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (chain(190), "value is nested too deeply"),
        ({"next": 1}, "value.next must be a JSON object"),
        ({"next": {"next": "x"}}, "value.next.next must be a JSON object"),
    ],
)
def test_a_recursive_schema_refuses(stack: None, value: dict, message: str):
    with pytest.raises(errors.HttpApiError, match=message):
        answer_schema.check_answer(value, NODE, None)


def test_a_recursive_schema_takes_70_levels(stack: None):
    answer_schema.check_answer(chain(70), NODE, None)


def test_a_large_answer_is_checked_within_the_steps():
    answer_schema.check_answer(list(range(60_000)), {"items": {"type": "integer"}, "uniqueItems": True}, None)
