"""Input schemas found by reading: annotations, states, placeholders."""

import ast

import pytest

from plan.inputs.class_schema import class_schema
from plan.inputs.classes import Source, classes_of
from plan.inputs.find import find_input_schema


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


CLASSES = """
class In(TypedDict):
    a: int
class Out(In):
    b: int
class Model(BaseModel):
    c: int
class Ask(StartEvent):
    d: int
"""
SCHEMAS = {
    None: None,
    "In": {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]},
    "In, partial": {"type": "object", "properties": {"a": {"type": "integer"}}},
    "Out, partial": {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}},
    "Model": {"type": "object", "properties": {"c": {"type": "integer"}}, "required": ["c"]},
    "Ask": {"type": "object", "properties": {"d": {"type": "integer"}}, "required": ["d"]},
    "YAML": {"type": "object", "properties": {"e": {"type": "string"}}, "required": ["e"]},
}
EVENT = CLASSES[CLASSES.index("class Ask") :]
GRAPH = "graph = StateGraph(In).compile()\n"


@pytest.mark.parametrize(
    ("code", "entrypoint", "schema"),
    [
        # The parameter of a function.
        ("def f(inputs: In): ...", "f", "In"),
        ("async def f(x: typing.In, /): ...", "f", "In"),
        ("def f(x: Model, inputs: In): ...", "f", "In"),
        ("def f(inputs: In, /, x: Model): ...", "f", "In"),
        ("def f(x: Model, *, inputs: In): ...", "f", "In"),
        ("def f(*, x: In): ...", "f", "In"),
        ("def f(x: In, y: In): ...", "f", None),
        ("def f(x): ...", "f", None),
        ("def f(): ...", "f", None),
        ("def f(x: In): ...\ndef g(x: Model): ...", "g", "Model"),
        ("def f(x: In): ...\nclass f(Flow[Model]): ...", "f", "In"),
        # The state of the only graph.
        (GRAPH, "graph", "In, partial"),
        ("def make():\n    return graph.StateGraph(state_schema=Out)", "make", "Out, partial"),
        ("graph = StateGraph(Out, input_schema=In, state_schema=Model)", "graph", "In, partial"),
        ("graph = StateGraph(Out, input=In, state_schema=Model)", "graph", "In, partial"),
        ("graph = StateGraph(In, output_schema=Out)", "graph", "In, partial"),
        ("a = StateGraph(In)\ngraph = StateGraph(In)", "graph", "In, partial"),
        ("a = StateGraph(Out)\ngraph = StateGraph(In)", "graph", None),
        ("graph = StateGraph(Elsewhere)", "graph", None),
        ("graph = StateGraph()\nother = Graph(In)", "graph", None),
        # The state of a flow.
        ("class F(Flow[In]): ...", "F", "In, partial"),
        ("class F(Mixin[Model], flow.Flow[Out]): ...", "F.kickoff", "Out, partial"),
        ("class F(Flow[Model]): ...", "F", "Model"),
        ("class F(Flow): ...\nclass G(Flow[In]): ...", "F", None),
        ("class F(Other[In]): ...", "F", None),
        # The only StartEvent.
        ("workflow = W()\n" + EVENT, "workflow", "Ask"),
        ("class W(Workflow): ...\n" + EVENT, "W", "Ask"),
        ("workflow = W()\n" + EVENT + EVENT, "workflow", None),
        ("workflow = W()\n" + GRAPH + EVENT, "workflow", "In, partial"),
        ("class F(Flow[In]): ...\n" + EVENT, "F", "In, partial"),
        ("class F(Flow): ...\n" + GRAPH, "F", None),
        ("def f(x: Model): ...\n" + GRAPH, "f", "Model"),
        ("def f(x: Elsewhere): ...\n" + GRAPH, "f", "In, partial"),
        ("def f(): ...\n" + EVENT, "f", None),
    ],
)
def test_source_tells_the_schema_of_the_input(code, entrypoint, schema):
    text = CLASSES[: CLASSES.index("class Ask")] + code
    placeholders = SCHEMAS[schema] or SCHEMAS["YAML"]
    assert found(text, f"main:{entrypoint}") == SCHEMAS[schema]
    assert found(text, f"main:{entrypoint}", **{"tasks.yaml": "x: {e}"}) == placeholders


@pytest.mark.parametrize(
    ("files", "names"),
    [
        ({"a/config/agents.yaml": "x: {topic} {b}\ny: {topic}", "a/tasks.yml": "{n-1} {A_2}"},
         ["topic", "b", "n-1", "A_2"]),
        ({"a/config/tasks.yaml": "{c}", "a/config/agents.yml": "{b}", "a/agents.yaml": "{a}"}, [*"abc"]),
        ({"a/agents.yaml": "# {a}\n  # {b}\nx: {c} # {d}"}, ["c", "d"]),
        ({"a/agents.yaml": "{{a}} {b c} {2d} {}"}, None),
        ({"agents.yaml": "{a}", "a/b/agents.yaml": "{b}", "a/x/config/agents.yaml": "{c}"}, None),
        ({"a/b/agents.yaml": "{a}", "a/tasks.yaml": "{b}"}, ["b"]),
        ({"a/crew.yaml": "{a}", "a/agents.json": "{b}"}, None),
        ({"a/agents.yaml": "\ufffd {a}", "a/tasks.yaml": "{b}"}, ["b"]),
    ],
)  # fmt: skip
def test_placeholders_of_the_files_beside_a_crew_are_its_input(files, names):
    encoded = {path: text.encode().replace("\ufffd".encode(), b"\xff") for path, text in files.items()}
    encoded["a/crew.py"] = b"class A: ..."
    assert find_input_schema(encoded, "a.crew:A", "a/crew.py", "3.11") == (
        names
        and {
            "type": "object",
            "properties": {name: {"type": "string"} for name in names},
            "required": names,
        }
    )


def test_file_that_is_no_module_or_cannot_be_read_has_no_schema():
    files = {"flow.yaml": b"x: 1", "agents.yaml": b"{a}", "a.py": b"x = <syntax of a later Python>"}
    assert find_input_schema(files, "flow.yaml", "flow.yaml", "3.11") is None
    assert find_input_schema(files, "a:x", "a.py", "3.99") is None
    assert find_input_schema(files, "a:x", "a.py", "3.11") is None


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


def test_classes_with_many_fields_of_each_other_take_bounded_steps():
    classes = "".join(
        f"class C{n}({', '.join(['C0'] * 50)}):\n"
        + "".join(f"    f{m}: C{(n + 1) % 5}\n" for m in range(200))
        for n in range(5)
    )
    source = Source({}, "3.11", [""])
    class_schema("C1", classes_of(ast.parse(classes), "main.py", source))
    assert source.steps_left < 0
