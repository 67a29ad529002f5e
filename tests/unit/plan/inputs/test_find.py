"""Input schemas found by reading: annotations, states, placeholders."""

import ast

import pytest

from plan.inputs.class_schema import class_schema, classes_of
from plan.inputs.find import find_input_schema
from plan.make import make_plan


def found(text, entrypoint="main:kickoff", **files):
    tree = {"main.py": text, **{name.replace("__", "/"): content for name, content in files.items()}}
    encoded = {path: content.encode() for path, content in tree.items()}
    return find_input_schema(encoded, entrypoint, "main.py", "3.11")


INPUT = """
from typing import Annotated, Any, Literal, NotRequired, Optional, TypedDict
from pydantic import BaseModel, Field
class Place(TypedDict):
    name: str
class Input(TypedDict):
    topic: str
    depth: NotRequired[int]
    ratio: float | None
    sure: Optional[bool]
    names: list[str]
    style: Literal["short", "long"]
    place: Place
    anything: Any
    more: Annotated[dict[str, int], "x"]
    late: "str"
class Model(BaseModel):
    topic: str = Field(description="About what.")
    depth: int = 3
    size: int = Field(4, gt=0)
    names: list[str] = Field(default_factory=list)
    given: str = Field(...)
"""


def test_a_typed_dict_of_the_parameter():
    schema = found(INPUT + "def kickoff(inputs: Input): ...")
    assert schema == {
        "type": "object",
        "properties": {
            "topic": {"type": "string"},
            "depth": {"type": "integer"},
            "ratio": {"type": "number"},
            "sure": {"type": "boolean"},
            "names": {"type": "array", "items": {"type": "string"}},
            "style": {"enum": ["short", "long"]},
            "place": {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]},
            "anything": {},
            "more": {"type": "object"},
            "late": {"type": "string"},
        },
        "required": ["topic", "names", "style", "place", "anything", "more", "late"],
    }


@pytest.mark.parametrize(
    "signature",
    [
        "def kickoff(inputs: Model): ...",
        "async def kickoff(one: Model): ...",
        "def kickoff(x, *, inputs: Model): ...",
    ],
)
def test_a_model_of_the_parameter_that_gets_the_input(signature):
    assert found(INPUT + signature) == {
        "type": "object",
        "properties": {
            "topic": {"type": "string", "description": "About what."},
            "depth": {"type": "integer", "default": 3},
            "size": {"type": "integer", "default": 4},
            "names": {"type": "array", "items": {"type": "string"}},
            "given": {"type": "string"},
        },
        "required": ["topic", "given"],
    }


STATE = """
class Base(TypedDict):
    topic: str
class State(Base):
    answer: str
class In(TypedDict):
    topic: str
"""


@pytest.mark.parametrize(
    ("graph", "fields"),
    [
        ("graph = StateGraph(State).compile()", ["topic", "answer"]),
        (
            "def build():\n    return StateGraph(state_schema=State).compile()\ngraph = build()",
            ["topic", "answer"],
        ),
        ("graph = StateGraph(State, input_schema=In).compile()", ["topic"]),
        ("a = StateGraph(State)\ngraph = StateGraph(In).compile()", None),
        ("graph = StateGraph(Elsewhere).compile()", None),
    ],
)
def test_the_state_of_the_only_graph(graph, fields):
    schema = found(STATE + graph, "main:graph")
    assert schema == (
        None
        if fields is None
        else {"type": "object", "properties": {field: {"type": "string"} for field in fields}}
    )


def test_the_state_of_a_flow():
    text = "class State(BaseModel):\n    topic: str = ''\nclass Story(Flow[State]):\n    pass\n"
    assert found(text, "main:Story")["properties"] == {"topic": {"type": "string", "default": ""}}


EVENT = "class Ask(StartEvent):\n    topic: str\n    depth: int = 3\n"


@pytest.mark.parametrize(
    ("text", "entrypoint", "fields"),
    [
        (EVENT + "class Tides(Workflow):\n    ...\n", "main:Tides", ["topic", "depth"]),
        (EVENT + "workflow = Tides()\n", "main:workflow", ["topic", "depth"]),
        (EVENT + EVENT.replace("Ask", "More") + "workflow = Tides()\n", "main:workflow", None),
    ],
)
def test_the_only_start_event_of_a_workflow(text, entrypoint, fields):
    schema = found(text, entrypoint)
    assert (schema and list(schema["properties"])) == fields
    assert schema is None or schema["required"] == ["topic"]


def test_placeholders_of_a_crew():
    text = "@CrewBase\nclass Research:\n    pass\n"
    agents = 'role: "{topic} expert"\n# {comment}\ngoal: "a {{literal}} and {n-1}"\n'
    schema = found(
        text, "main:Research", **{"config__agents.yaml": agents, "tests__tasks.yaml": "x: '{other}'"}
    )
    assert schema == {
        "type": "object",
        "properties": {"topic": {"type": "string"}, "n-1": {"type": "string"}},
        "required": ["topic", "n-1"],
    }


@pytest.mark.parametrize(
    "text",
    [
        "def kickoff(inputs): ...",
        "def kickoff(inputs: dict): ...",
        "def kickoff(): ...",
        "kickoff = print",
        "class A(A):\n    x: A\ndef kickoff(inputs: B): ...",
        "def kickoff(inputs: 'not an ('): ...",
        "def broken(",
    ],
)
def test_a_source_without_annotations_gives_no_schema(text):
    assert found(text) is None


def test_classes_that_name_themselves_end():
    schema = found("class A(A):\n    next: A\n    more: 'list[A]'\ndef kickoff(inputs: A): ...")
    assert set(schema["properties"]) == {"next", "more"}


def test_a_found_schema_that_is_too_large_is_left_out():
    fields = "".join(f"    field_{number}: str\n" for number in range(200))
    files = {"main.py": f"class I(TypedDict):\n{fields}def kickoff(inputs: I): ...".encode()}
    assert make_plan(files, None, ["3.11"]).plan.inputs is None
    small = {"main.py": b"class I(TypedDict):\n    a: str\ndef kickoff(inputs: I): ..."}
    plan = make_plan(small, None, ["3.11"]).plan
    assert plan.inputs is not None and not plan.inputs_declared


def test_classes_with_many_fields_of_each_other_take_bounded_steps():
    classes = "".join(
        f"class C{n}({', '.join(['C0'] * 50)}):\n"
        + "".join(f"    f{m}: C{(n + 1) % 5}\n" for m in range(200))
        for n in range(5)
    )
    tree = ast.parse(classes)
    table = classes_of(tree)
    class_schema("C1", table)
    assert table.steps_left < 0
