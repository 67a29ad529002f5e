"""Entrypoints of every kind, and the conversion of their return values.

The fakes have the shape of the frameworks' objects; tests/e2e/frameworks uses the real ones.
"""

from __future__ import annotations

import contextlib
import dataclasses
import datetime
import enum
import functools
import json
import sys
import types
import typing
import uuid
from collections import UserString, deque, namedtuple
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plan.discovery.module_objects import _PART_NAMES
from runner.crewyard_runtime.call import PART_NAMES, call
from runner.crewyard_runtime.entrypoint import EntrypointNotFound, load
from runner.crewyard_runtime.events import CUT_MARK, MAX_DATA_BYTES, check, emit, fit
from runner.crewyard_runtime.frameworks import langgraph_questions
from runner.crewyard_runtime.frameworks.call_options import CallOptions
from runner.crewyard_runtime.jsonsafe import NotJsonError, json_safe, to_json
from runner.crewyard_runtime.output import result
from runner.crewyard_runtime.questions.question import InputRequired

INPUT = {"topic": "tea"}


class Callable_:
    def __call__(self, value: Any) -> Any:
        return "instance", value


class FakeCrew:
    def kickoff(self, inputs: Any = None) -> Any:
        return "crew", inputs


class LiteAgent:
    """As an agent of CrewAI, which takes a prompt."""

    def kickoff(self, messages: Any, response_format: Any = None) -> Any:
        return messages, response_format


class Base:
    """As CrewAI's @CrewBase makes them: no kickoff of its own, a method that gives the crew."""

    def crew(self) -> FakeCrew:
        return FakeCrew()


class Graph:
    def invoke(self, value: Any, config: Any = None) -> Any:
        return "graph", value


class Builder:
    """As a StateGraph that is not compiled."""

    def add_node(self) -> None: ...

    def compile(self) -> Graph:
        return Graph()


class Formula:
    """A value with a method `compile` that builds no graph."""

    def compile(self) -> Graph:
        raise AssertionError


FORMULA = Formula()


class Flow(FakeCrew):
    """As CrewAI's: an input, also an empty one, must suit the state's schema."""


class AsyncFlow:
    async def kickoff(self) -> Any:
        return "flow"


class AsyncNode:
    """As a LangGraph graph with a node that has no synchronous function."""

    nodes = {"a": type("Node", (), {"bound": type("Bound", (), {"func": None, "afunc": lambda: 1})})}  # noqa: RUF012

    def invoke(self, value: Any) -> Any:
        raise TypeError("No synchronous function")

    async def ainvoke(self, value: Any) -> Any:
        return "asynchronous", value


class Part:
    """A part of a chain or graph, by the attributes that LangChain's and LangGraph's have."""

    def __init__(self, **attributes: Any) -> None:
        self.__dict__.update(attributes)


class Chain(Part):
    def invoke(self, value: Any) -> Any:
        return "synchronous", value

    async def ainvoke(self, value: Any) -> Any:
        return "asynchronous", value


class Odd(Chain):
    @property
    def nodes(self) -> Any:
        raise RuntimeError("unreadable")


class Sequence_(Part):
    """As LangChain's RunnableSequence, whose `steps` are another list each time."""

    @property
    def steps(self) -> list[Any]:
        return [self.first, self.last]


ASYNC = Part(afunc=abs)
BOTH = Part(func=abs, afunc=abs)


def parallel(odd: str) -> Chain:
    """Three sequences side by side; the one named `odd` is asynchronous only."""
    return Chain(steps__={name: Sequence_(first=BOTH, last=ASYNC if name == odd else BOTH) for name in "abc"})


LOOP = Chain()
LOOP.bound = LOOP  # type: ignore[attr-defined]
CHAINS: list[tuple[Any, str]] = [
    (Chain(), "synchronous"),
    (Chain(func=abs, afunc=abs), "synchronous"),
    (Chain(func=None, afunc=abs), "asynchronous"),  # a lambda of a coroutine function
    (Chain(steps=[BOTH, ASYNC]), "asynchronous"),
    (Chain(steps=[BOTH, BOTH]), "synchronous"),
    (Chain(steps__={"a": BOTH, "b": ASYNC}), "asynchronous"),
    (Chain(bound=Chain(bound=ASYNC)), "asynchronous"),
    (Chain(mapper=Chain(steps__={"a": ASYNC})), "asynchronous"),
    (Chain(branches=[(BOTH, ASYNC)], default=BOTH), "asynchronous"),
    (Chain(branches=[(BOTH, BOTH)], default=ASYNC), "asynchronous"),
    (Chain(nodes={"a": Part(bound=Chain(nodes={"b": Part(bound=ASYNC)}))}), "asynchronous"),
    (Chain(bound=Part(tools_by_name={"t": Part(func=None, coroutine=abs)})), "asynchronous"),
    (Chain(bound=Part(tools_by_name={"t": Part(func=abs, coroutine=abs)})), "synchronous"),
    (Chain(nodes={}, builder=Part(branches={"a": {"b": Part(path=ASYNC)}})), "asynchronous"),
    (parallel("a"), "asynchronous"),
    (parallel("c"), "asynchronous"),
    (parallel(""), "synchronous"),
    (Chain(_atransform=abs), "asynchronous"),  # a runnable of an asynchronous generator
    (Chain(_transform=abs, _atransform=abs), "synchronous"),
    (LOOP, "synchronous"),
    (Odd(), "synchronous"),
]  # fmt: skip


@pytest.mark.parametrize(("given", "expected"), [({}, None), (INPUT, INPUT)])
@pytest.mark.parametrize("flow", [Flow, Flow()])
def test_a_flow_without_an_input_gets_none(flow: Any, given: dict[str, Any], expected: Any) -> None:
    assert call(flow, given) == ("crew", expected)
    assert call(FakeCrew(), given) == ("crew", given)


@pytest.mark.parametrize(("chain", "expected"), CHAINS, ids=range(len(CHAINS)))
def test_a_chain_with_an_async_only_part_is_awaited(chain: Any, expected: str) -> None:
    assert call(chain, dict(INPUT)) == (expected, INPUT)


async def coroutine(inputs: Any) -> Any:
    return "coroutine", inputs


async def asynchronous_generator() -> Any:
    yield 1
    yield 2


def generator() -> Any:
    yield 1
    yield 2


def decorated(value: Any, more: int = 1) -> Any:
    return "decorated", value


@functools.wraps(decorated)
def wrapper(*args: Any) -> Any:
    return decorated(*args)


CALLS: list[tuple[Any, Any]] = [
    (lambda inputs: inputs, INPUT),
    (lambda **named: named, {"inputs": INPUT}),
    (lambda anything: anything, INPUT),
    (lambda a=None: a, INPUT),
    (lambda a, b=1: a, INPUT),
    (lambda a, **others: (a, others), (INPUT, {})),
    (lambda a=1, b=2: (a, b), (1, 2)),
    (lambda *rest: rest, (INPUT,)),
    (lambda: "nothing", "nothing"),
    (lambda *, inputs: inputs, INPUT),
    (Callable_(), ("instance", INPUT)),
    (functools.partial(decorated, more=2), ("decorated", INPUT)),
    (wrapper, ("decorated", INPUT)),
    (coroutine, ("coroutine", INPUT)),
    (generator, [1, 2]),
    (asynchronous_generator, [1, 2]),
    (FakeCrew, ("crew", INPUT)),
    (FakeCrew(), ("crew", INPUT)),
    (LiteAgent(), ("tea", None)),
    (LiteAgent, ("tea", None)),
    (lambda: LiteAgent(), ("tea", None)),
    (Base, ("crew", INPUT)),
    (Base(), ("crew", INPUT)),
    (Graph(), ("graph", INPUT)),
    (Builder(), ("graph", INPUT)),
    (lambda: Graph(), ("graph", INPUT)),
    (lambda: FakeCrew(), ("crew", INPUT)),
    (lambda: Builder(), ("graph", INPUT)),
    (lambda: Base(), ("crew", INPUT)),
    (lambda: FORMULA, FORMULA),
    (AsyncFlow(), "flow"),
    (AsyncNode(), ("asynchronous", INPUT)),
]


@pytest.mark.parametrize(("entrypoint", "expected"), CALLS, ids=range(len(CALLS)))
def test_entrypoints_are_called_according_to_their_kind(entrypoint: Any, expected: Any) -> None:
    assert call(entrypoint, dict(INPUT)) == expected


@pytest.mark.parametrize("entrypoint", [5, "text", None, lambda a, b: 1, lambda *, a, b: 1])
def test_an_entrypoint_that_cannot_be_called_is_an_error(entrypoint: Any) -> None:
    with pytest.raises(EntrypointNotFound):
        call(entrypoint, {})


def several(topic: Any, depth: Any, style: Any = "short", /, *, place: Any, more: Any = None) -> Any:
    return topic, depth, style, place, more


def by_name(topic: Any, depth: Any = 1, *, place: Any, style: Any = "short") -> Any:
    return topic, depth, place, style


def test_an_optional_part_of_a_factory_does_not_get_the_input() -> None:
    assert call(lambda model=None: ["made", model], INPUT) == ["made", None]
    assert call(lambda model: ["made", model], INPUT) == ["made", INPUT]
    assert call(lambda topic=None: ["made", topic], INPUT) == ["made", INPUT]
    assert PART_NAMES == _PART_NAMES


def test_a_module_of_an_installed_project_imports_those_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a flow of `crewai create` that is below the root: `from crews.poem import Poem`."""
    package = tmp_path / "installed" / "tideflow"
    (package / "inner" / "oldcrews").mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "inner" / "oldcrews" / "poem.py").write_text("POEM = 5\n")
    (package / "inner" / "main.py").write_text("from oldcrews.poem import POEM\n")
    monkeypatch.syspath_prepend(str(package.parent))
    monkeypatch.chdir(tmp_path)
    assert load("tideflow.inner.main:POEM") == 5


class PromptedAgent:
    """As an agent of Strands, whose first parameter is the prompt and which takes any other name."""

    def __call__(self, prompt: str | None = None, *, state: object = None, **others: object) -> object:
        return prompt, others


class StrictlyPromptedAgent:
    def __call__(self, prompt: str, **others: object) -> object:
        return prompt, others


def test_an_object_that_would_not_get_its_prompt_is_refused() -> None:
    with pytest.raises(EntrypointNotFound, match=r"PromptedAgent.* takes `prompt` .* Name a function"):
        call(PromptedAgent(), INPUT)
    with pytest.raises(EntrypointNotFound, match="takes `prompt`"):
        call(StrictlyPromptedAgent(), INPUT)
    assert call(lambda prompt=None, **others: (prompt, others), INPUT) == (None, {"inputs": INPUT})


def test_several_required_arguments_are_given_by_name() -> None:
    given = {"topic": "tides", "place": "Ely", "style": "long", "other": 1}
    assert call(by_name, given) == ("tides", 1, "Ely", "long")
    assert call(lambda topic, place, **others: (topic, place, others), given) == ("tides", "Ely", {})
    with pytest.raises(EntrypointNotFound, match="the run's input lacks place"):
        call(by_name, {"topic": "tides"})
    with pytest.raises(EntrypointNotFound, match="lacks topic, depth"):  # which cannot be given by name
        call(several, {"topic": "tides", "depth": 1, "place": "Ely"})


class Recorder:
    """A graph that returns what it was invoked with."""

    def __init__(self, context_schema: type | None = None) -> None:
        self.context_schema = context_schema

    def invoke(self, value: Any, config: Any = None, *, context: Any = None) -> Any:
        return value, config, context


class OldRecorder:
    """As a graph of LangGraph before 0.6, which has no context."""

    def invoke(self, value: Any, config: Any = None) -> Any:
        return value, config


class Strict:
    def __init__(self, model: str) -> None:
        self.model = model


CONFIG: dict[str, Any] = {"configurable": {"thread_id": "run_1"}}
OWN = {"configurable": {"thread_id": "mine", "speed": 5}, "tags": ["fast"]}
GRAPHS: list[tuple[Any, dict[str, Any], Any]] = [
    (Recorder(), {}, (INPUT, CONFIG, None)),
    (Recorder(dict), {}, (INPUT, CONFIG, {})),
    (Recorder(Strict), {}, (INPUT, CONFIG, None)),
    (Recorder(Strict), {"context": {"model": "a"}}, (INPUT, CONFIG, {"model": "a"})),
    (Recorder(), {"config": OWN}, (INPUT, OWN, None)),
    (OldRecorder(), {"context": {"speed": 1}}, (INPUT, {"configurable": {"speed": 1, "thread_id": "run_1"}})),
]


@pytest.mark.parametrize(("graph", "given_", "expected"), GRAPHS, ids=range(len(GRAPHS)))
def test_a_graph_gets_config_and_context(graph: Any, given_: dict[str, Any], expected: Any) -> None:
    assert call(graph, dict(INPUT), CallOptions("run_1", "langgraph", **given_)) == expected


@pytest.mark.parametrize("target", [FakeCrew(), lambda inputs: 1])
def test_config_and_context_for_anything_but_a_graph_are_an_error(target: Any) -> None:
    with pytest.raises(ValueError, match="config and context, which only graphs of LangGraph take"):
        call(target, {}, CallOptions("run_1", "python", {}, {}))


def by_config(config: Any) -> Any:
    return Made(config)


def by_annotation(settings: RunnableConfig) -> Any:  # type: ignore[name-defined]  # noqa: F821
    return Made(settings)


async def by_coroutine(config: Any) -> Any:
    return Made(config)


def by_runtime(runtime: Any) -> Any:
    return Made(runtime.execution_runtime.context)


@contextlib.asynccontextmanager
async def entered(config: Any) -> Any:
    yield Made(config)


@contextlib.contextmanager
def entered_at_once(config: Any) -> Any:
    yield Made(config)


async def later(config: Any) -> Any:
    return entered(config)


@contextlib.asynccontextmanager
async def crew_in_a_context() -> Any:
    yield FakeCrew()


async def builder_by_coroutine() -> Any:
    return Builder()


@contextlib.asynccontextmanager
async def builder_in_a_context() -> Any:
    yield Builder()


async def builder_later() -> Any:
    return builder_in_a_context()


async def base_by_coroutine() -> Any:
    return Base()


class Made:
    def __init__(self, by: Any) -> None:
        self.by = by

    def invoke(self, value: Any, config: Any = None) -> Any:
        return self.by


FACTORIES: list[tuple[Any, Any]] = [
    (by_config, CONFIG),
    (by_annotation, CONFIG),
    (by_coroutine, CONFIG),
    (by_runtime, None),
    (entered, CONFIG),
    (entered_at_once, CONFIG),
    (later, CONFIG),
    (crew_in_a_context, ("crew", INPUT)),
    (builder_by_coroutine, ("graph", INPUT)),
    (builder_in_a_context, ("graph", INPUT)),
    (builder_later, ("graph", INPUT)),
    (base_by_coroutine, ("crew", INPUT)),
]


@pytest.mark.parametrize(("factory", "expected"), FACTORIES, ids=range(len(FACTORIES)))
def test_factories_get_config_and_runtime_and_are_entered(factory: Any, expected: Any) -> None:
    assert call(factory, dict(INPUT), CallOptions("run_1", "langgraph")) == expected


async def test_a_run_gives_its_config_and_context_to_the_graph(pod: Any, api: Any) -> None:
    pod.crew(
        """
        class Graph:
            def invoke(self, value, config=None, *, context=None):
                return [value, config, context]
        graph = Graph()
        """
    )
    api.entrypoint, api.input = "main:graph", {"n": 1}
    api.settings = {"config": {"configurable": {"speed": 5}}, "context": {"model": "small"}}
    await pod.run()
    configurable = {"thread_id": "run_01abc", "speed": 5}
    assert api.result["output"] == [{"n": 1}, {"configurable": configurable}, {"model": "small"}]


def test_a_plain_function_with_a_parameter_config_gets_the_input() -> None:
    assert call(lambda config: config, dict(INPUT)) == INPUT


@dataclasses.dataclass
class DataPoint:
    PARENT: typing.ClassVar[str] = "of the class, not of its values"
    x: int
    y: Any


class Colour(enum.Enum):
    RED = "red"
    LARGE = 10**400
    BROKEN = "a\ud800b"
    NONE = None
    UNKNOWN = float("nan")


class Model:
    def model_dump(self) -> dict[str, Any]:
        return {"content": "hello", "at": datetime.date(2026, 1, 2)}


class RootModel:
    """As a model of pydantic whose root is a list."""

    def model_dump(self) -> Any:
        return ["ab", "cd"]


class Hostile:
    def __str__(self) -> str:
        raise RuntimeError

    def __repr__(self) -> str:
        raise RuntimeError

    @property
    def model_dump(self) -> Any:
        raise RuntimeError


Pair = namedtuple("Pair", "a b")
MOMENT = datetime.datetime(2026, 11, 21, 10, 0, tzinfo=datetime.UTC)
VALUES: list[tuple[Any, Any]] = [
    (DataPoint(1, DataPoint(2, None)), {"x": 1, "y": {"x": 2, "y": None}}),
    (Model(), {"content": "hello", "at": "2026-01-02"}),
    ([Model()], [{"content": "hello", "at": "2026-01-02"}]),
    (RootModel(), ["ab", "cd"]),
    (Colour.RED, "red"),
    (Colour.LARGE, hex(10**400)),
    (Colour.BROKEN, "a?b"),
    (Colour.NONE, None),
    (Colour.UNKNOWN, "nan"),
    (Pair(1, {2}), {"a": 1, "b": [2]}),
    ({3, 1, 2}, [1, 2, 3]),
    (deque([1]), [1]),
    (UserString("tides"), "tides"),
    (b"text", "text"),
    (b"\xff\x00", "/wA="),
    (MOMENT, "2026-11-21T10:00:00+00:00"),
    (datetime.timedelta(minutes=1), 60.0),
    (Path("/a/b"), "/a/b"),
    (uuid.UUID(int=1), "00000000-0000-0000-0000-000000000001"),
    (float("nan"), "nan"),
    (float("inf"), "inf"),
    ("a\ud800b", "a?b"),
    ({1: "a", None: "b", False: "c", (1, 2): "d"}, {"1": "a", "null": "b", "false": "c", "(1, 2)": "d"}),
    (ValueError("x"), "ValueError: x"),
    (ValueError("a\ud800b"), "ValueError: a?b"),
    (range(3), [0, 1, 2]),
    (10**400, hex(10**400)),
]


@pytest.mark.parametrize(("value", "expected"), VALUES, ids=range(len(VALUES)))
def test_values_become_json(value: Any, expected: Any) -> None:
    assert json_safe(value) == expected


HONEST = [item for item in VALUES if not (isinstance(item[0], dict) and (1, 2) in item[0])]


@pytest.mark.parametrize(("value", "expected"), HONEST, ids=range(len(HONEST)))
def test_values_with_a_json_form_become_outputs(value: Any, expected: Any) -> None:
    assert to_json(value) == expected


class Interface:
    """As a model of pydantic 1."""

    __fields__: typing.ClassVar[dict[str, Any]] = {"name": str}

    def dict(self) -> Any:
        return {"name": "old"}


class Broken:
    def model_dump(self) -> Any:
        raise RuntimeError("unreadable")


class Rows(dict[str, int]):
    """As one that reads its items when it is asked for them."""

    def items(self) -> Any:
        raise RuntimeError("unreadable")


NO_JSON: list[tuple[Any, list[object]]] = [
    (object(), []),
    ({"a": [1, object()]}, ["a", 1]),
    (lambda: 1, []),
    (int, []),
    ({(1, 2): "tuple"}, []),
    (Broken(), []),
    ({"rows": Rows(a=1)}, ["rows"]),
    (DataPoint(1, object()), ["y"]),
    (3j, []),
]


@pytest.mark.parametrize(("value", "path"), NO_JSON, ids=range(len(NO_JSON)))
def test_values_without_a_json_form_are_no_outputs(value: Any, path: list[object]) -> None:
    with pytest.raises(NotJsonError) as raised:
        to_json(value)
    assert raised.value.path == path


def test_a_model_of_pydantic_1_becomes_json() -> None:
    assert to_json(Interface()) == {"name": "old"}


def test_a_long_text_form_is_whole_in_an_output() -> None:
    assert to_json(Path("/" + "a" * 5000)) == "/" + "a" * 5000


def test_cycles_and_depth_end() -> None:
    loop: dict[str, Any] = {}
    loop["self"] = [loop]
    assert json_safe(loop) == {"self": ["<refers to itself>"]}
    with pytest.raises(NotJsonError, match="contains itself"):
        to_json(loop)
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    json.dumps(json_safe(deep))
    with pytest.raises(NotJsonError, match="nested"):
        to_json(deep)
    json.dumps(json_safe(Hostile()))
    assert json_safe([Rows(a=1)]) == ["{'a': 1}"]
    shared = [1]
    assert json_safe([shared, shared]) == [[1], [1]]


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary() | st.datetimes()
    | st.text(alphabet=st.characters(categories=["Cs", "Lu"])),
    lambda inner: st.lists(inner) | st.dictionaries(st.text() | st.integers() | st.none(), inner)
    | st.frozensets(
        st.integers() | st.text()) | st.tuples(inner),
    max_leaves=20,
)  # fmt: skip


@given(anything)
def test_any_value_becomes_strict_json_in_utf_8(value: Any) -> None:
    json.dumps(json_safe(value), allow_nan=False, ensure_ascii=False).encode()


@given(st.dictionaries(st.text(max_size=20), anything, max_size=8), st.integers(300, 3000))
def test_event_data_fits(data: dict[str, Any], max_bytes: int) -> None:
    assert len(json.dumps(fit(data, max_bytes), ensure_ascii=False).encode()) <= max_bytes


@pytest.mark.parametrize(
    "data",
    [
        {"text": "x" * 1_000_000},
        {"text": "\x00" * 200_000, "other": "kept"},
        {"rows": [{"n": n, "text": "ä" * 50} for n in range(5000)]},
        {f"key{n}": n for n in range(20_000)},
        {"k" * 100_000: 1},
    ],
)
def test_large_data_is_cut_with_a_mark(data: dict[str, Any]) -> None:
    cut = fit(data, MAX_DATA_BYTES)
    assert len(json.dumps(cut, ensure_ascii=False).encode()) <= MAX_DATA_BYTES
    if "text" in data or "rows" in data:
        assert CUT_MARK in json.dumps(cut, ensure_ascii=False)
        assert cut.get("other") == data.get("other")


@pytest.mark.parametrize(
    "kind", ["run.started", "run.x", "artifact", "", "two words", "a\nb", "x" * 65, None]
)
def test_emit_rejects_reserved_and_invalid_types(kind: Any) -> None:
    with pytest.raises(ValueError, match="emit: "):
        emit(kind)


@pytest.mark.parametrize("key", ["run_id", "timestamp"])
def test_emit_rejects_reserved_keys_with_the_next_step(key: str) -> None:
    with pytest.raises(ValueError, match=f"my_{key}"):
        emit("note", **{key: 1})


def test_emit_outside_a_run_does_nothing() -> None:
    emit("agent.started", agent="a", type="data may have this key too")
    check("tool.called", {})


def test_a_large_output_becomes_an_artifact_beside_the_crews_own(tmp_path: Path) -> None:
    assert result({"a": 1}, 100, str(tmp_path)) == {"result": {"a": 1}}
    (tmp_path / "output.json").write_text("mine")
    report = result(["x" * 200], 100, str(tmp_path))
    assert report == {"result": None, "output_artifact": "output-2.json"}
    assert json.loads((tmp_path / "output-2.json").read_text()) == ["x" * 200]
    assert (tmp_path / "output.json").read_text() == "mine"
    lost = result(["x" * 200], 100, str(tmp_path / "output.json"))["failure"]
    assert isinstance(lost, dict)
    assert lost["reason"] == "ArtifactsLost"


async def test_a_large_output_is_stored_and_named(pod: Any, api: Any) -> None:
    # Some crews clear the directory by removing it.
    pod.crew("import os\ndef kickoff():\n    os.rmdir('artifacts')\n    return {'text': 'x' * 100_000}")
    await pod.run()
    assert (api.result["output"], api.result["output_artifact"]) == (None, "output.json")
    assert "The output is the artifact output.json: it has more than" in api.events[-1]["data"]["message"]
    [stored] = api.artifacts["output.json"]
    assert json.loads(stored.body) == {"text": "x" * 100_000}


class MemoryGraph(Graph):
    """As a graph that LangGraph compiled: without a store unless its module gives one."""

    def __init__(self, store: Any = None) -> None:
        self.store = store
        self.checkpointer = None
        self.interrupt_before_nodes: list[str] = []

    def invoke(self, value: Any, config: Any = None) -> Any:
        return getattr(self.store, "name", None)

    def get_state(self, config: Any) -> Any:
        return types.SimpleNamespace(next=self.interrupt_before_nodes)


class Wrapper:
    """As a runnable that LangChain makes of a graph: it reads the graph's attributes, and sets none."""

    def __init__(self, **fields: Any) -> None:
        self.__dict__.update(fields)

    def __getattr__(self, name: str) -> Any:
        return getattr(next(iter(vars(self).values())), name)

    def __setattr__(self, name: str, value: Any) -> None:
        raise ValueError(f'"Wrapper" object has no field "{name}"')

    def invoke(self, value: Any, config: Any = None) -> Any:
        return next(iter(vars(self).values())).invoke(value, config)


class RetryWrapper(Wrapper):
    """As the runnable of `with_retry`, which reads no attributes either."""

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(name)


class Model(Graph):
    """As a chat model, which has a field of this name, too."""

    store = None

    def invoke(self, value: Any, config: Any = None) -> Any:
        return self.store


@pytest.fixture
def langgraph(monkeypatch: pytest.MonkeyPatch) -> None:
    memory = types.ModuleType("langgraph.store.memory")
    vars(memory)["InMemoryStore"] = lambda: types.SimpleNamespace(name="of the run")
    for name in ("langgraph", "langgraph.store"):
        monkeypatch.setitem(sys.modules, name, types.ModuleType(name))
    monkeypatch.setitem(sys.modules, "langgraph.store.memory", memory)
    monkeypatch.setattr(langgraph_questions, "memory_checkpointer", object)


@pytest.mark.usefixtures("langgraph")
def test_a_graph_without_a_store_gets_one_for_the_run() -> None:
    own = types.SimpleNamespace(name="its own")
    assert call(MemoryGraph(), INPUT, CallOptions()) == "of the run"
    assert call(MemoryGraph(own), INPUT, CallOptions()) == "its own"


@pytest.mark.usefixtures("langgraph")
def test_a_graph_in_a_runnable_gets_a_store_and_its_breakpoints_count() -> None:
    for kind in (Wrapper, RetryWrapper):
        wrapper = kind(runnable=kind(bound=(graph := MemoryGraph())))
        assert call(wrapper, INPUT, CallOptions()) == "of the run"
        graph.interrupt_before_nodes = ["ask"]
        with pytest.raises(InputRequired, match="at a breakpoint before ask"):
            call(wrapper, INPUT, CallOptions())


@pytest.mark.usefixtures("langgraph")
def test_the_field_store_of_a_model_stays() -> None:
    assert call(Model(), INPUT, CallOptions()) is None
    assert call(Wrapper(bound=Model()), INPUT, CallOptions()) is None


async def test_directories_of_langgraph_json_are_on_the_path(pod: Any, api: Any) -> None:
    dependencies = (
        '{"dependencies": [".", "./all/two", "./all/pack", "./all/installed", "../app/../up", "httpx"]}'
    )
    pod.crew(dependencies, "langgraph.json")
    pod.crew("from mine.parts import x\nfrom pack.parts import y\nimport sys\n"
             "def kickoff(): return [x, y, [p for p in sys.path if 'installed' in p or p.endswith('up')]]\n",
             "all/two/mine/main.py")  # fmt: skip
    pod.crew("x = 1\n", "all/two/mine/parts.py")
    for path, code in (("pack/__init__.py", ""), ("pack/parts.py", "y = 2\n"), ("installed/setup.py", "")):
        pod.crew(code, f"all/{path}")
    api.entrypoint, api.settings = "all.two.mine.main:kickoff", {"framework": "langgraph"}
    await pod.run()
    # The directory of an installed project is behind its installation.
    assert api.result.get("output") == [1, 2, [str(pod.app / "all/installed")]], api.result


async def test_a_module_below_the_root_imports_those_beside_it(pod: Any, api: Any) -> None:
    pod.crew("import json, helper\ndef run():\n    return [helper.NAME, json.dumps(1)]", "src/bots/agent.py")
    pod.crew("NAME = 'beside'", "src/bots/helper.py")
    pod.crew("raise RuntimeError('it hides the standard library')", "src/bots/json.py")
    api.entrypoint = "bots.agent:run"
    await pod.run()
    assert api.result["output"] == ["beside", "1"]
