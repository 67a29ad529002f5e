"""LangChain's callbacks: the handler, called as LangChain does, and tables of its values."""

from __future__ import annotations

import itertools
from types import SimpleNamespace as Message
from typing import Any

import pytest

from runner.crewyard_runtime.frameworks import langchain_callbacks
from runner.crewyard_runtime.frameworks.call_times import CallTimes
from runner.crewyard_runtime.frameworks.langchain_values import (
    interruption,
    last_question,
    node_name,
    node_output,
    token_usage,
    tool_output,
)

NODE = {"langgraph_node": "plan", "langgraph_step": 2}
TASK_PATH = ("__pregel_push", ("__pregel_pull", "flow"), 0, True)
SEND_PATH = ("__pregel_push", 0, False)


@pytest.fixture
def reported(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, dict[str, Any]]]:
    events: list[tuple[str, dict[str, Any]]] = []
    monkeypatch.setattr(langchain_callbacks, "report", lambda type, data: events.append((type, data)))
    return events


def run(handler: Any, number: int = 1, **more: Any) -> None:
    handler.on_chain_start(
        None, more.pop("inputs", {}), run_id=number, parent_run_id=0, tags=["graph:step:2"], metadata=NODE,
        name="plan", **more,
    )  # fmt: skip


def test_a_node_is_an_agent_and_a_graph_is_not(reported: Any) -> None:
    handler = langchain_callbacks.LangChainHandler()
    handler.on_chain_start(None, {}, run_id=0, tags=[], metadata={}, name="report")
    run(handler)
    inner = {"run_id": 2, "parent_run_id": 1, "tags": ["seq:step:3"], "metadata": NODE, "name": "branch"}
    handler.on_chain_start(None, {}, **inner)
    handler.on_chain_end("write", run_id=2)
    handler.on_chain_end({"n": 1}, run_id=1)
    handler.on_chain_end({"n": 1}, run_id=0)
    agent = {"agent": "plan", "task": "step 2 of report"}
    assert reported == [("agent.started", agent), ("agent.completed", {**agent, "output": {"n": 1}})]


def test_failed_and_interrupted_nodes(reported: Any) -> None:
    bubble = type("GraphBubbleUp", (Exception,), {})
    question = type("GraphInterrupt", (bubble,), {})
    handler = langchain_callbacks.LangChainHandler()
    for number, error in enumerate([ValueError("no"), question([Message(value="sure?")]), bubble("there")]):
        run(handler, number)
        handler.on_chain_error(error, run_id=number)
        handler.on_chain_error(error, run_id=number)  # on the next level
    ends = [
        (kind, data.get("error", data.get("output"))) for kind, data in reported if kind != "agent.started"
    ]
    assert ends == [
        ("agent.error", "ValueError: no"),
        ("agent.completed", {"interrupt": ["sure?"]}),
        ("agent.completed", {"command": "there"}),
    ]


def test_tools_are_reported_with_the_calling_node(reported: Any) -> None:
    handler = langchain_callbacks.LangChainHandler()
    named = {"name": "look", "description": "looks"}
    handler.on_tool_start(named, "{'q': 'tea'}", run_id=1, metadata=NODE, inputs={"q": "tea"}, name=None)
    handler.on_tool_end(Message(content="found", tool_call_id="1"), run_id=1)
    handler.on_tool_start(named, "tea", run_id=2, metadata=None, inputs=None)
    handler.on_tool_error(ValueError(), run_id=2)
    assert reported == [
        ("tool.called", {"agent": "plan", "tool": "look", "input": {"q": "tea"}}),
        ("tool.result", {"agent": "plan", "tool": "look", "output": "found"}),
        ("tool.called", {"agent": None, "tool": "look", "input": "tea"}),
        ("tool.error", {"agent": None, "tool": "look", "error": "ValueError"}),
    ]


def test_usage_names_the_model_and_the_duration_of_the_call(
    reported: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = itertools.count(0, 2_500_000_000)
    monkeypatch.setattr(langchain_callbacks, "CallTimes", lambda: CallTimes(clock.__next__))
    handler = langchain_callbacks.LangChainHandler()
    handler.on_chat_model_start({}, [[]], run_id=1, metadata={"ls_model_name": "m"})
    handler.on_llm_end(response_with({"input_tokens": 3, "output_tokens": 4}), run_id=1)
    handler.on_llm_start({}, ["prompt"], run_id=2, invocation_params={"model_name": "n"})
    handler.on_llm_error(ValueError(), run_id=2)
    assert reported == [
        ("usage", {"model": "m", "prompt_tokens": 3, "completion_tokens": 4, "duration_ms": 2500})
    ]
    # The failed call is over, and one whose start was not seen has no duration.
    for call in (2, 3):
        handler.on_llm_end(response_with({"input_tokens": 3, "output_tokens": 4}), run_id=call)
    assert [data.get("duration_ms") for _, data in reported] == [2500, None, None]


def test_calls_that_never_end_are_evicted(reported: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(langchain_callbacks, "_MAX_OPEN_CALLS", 10)
    handler = langchain_callbacks.LangChainHandler()
    for number in range(100):
        run(handler, number)
    handler.on_chain_end(None, run_id=0)
    handler.on_chain_end(None, run_id=99)
    assert [kind for kind, _ in reported].count("agent.completed") == 1


def response_with(usage: Any, **metadata: Any) -> Any:
    message = Message(usage_metadata=usage, response_metadata=metadata)
    return Message(generations=[[Message(message=message)]], llm_output=None)


NODES: list[tuple[Any, Any, Any, str | None]] = [
    ("plan", ["graph:step:1"], NODE, "plan"),
    ("plan", ["seq:step:1"], NODE, None),
    ("plan", ["seq:step:1"], {**NODE, "langgraph_path": TASK_PATH}, "plan"),
    ("plan", ["seq:step:1"], {**NODE, "langgraph_path": SEND_PATH}, None),
    ("LangGraph", ["graph:step:1"], NODE, None),
    ("__start__", ["graph:step:0"], {"langgraph_node": "__start__"}, None),
    ("plan", None, NODE, None),
    ("plan", ["graph:step:1"], None, None),
    (None, ["graph:step:1"], {"langgraph_node": None}, None),
]


@pytest.mark.parametrize(("name", "tags", "metadata", "expected"), NODES, ids=range(len(NODES)))
def test_nodes_are_distinguished_from_calls_inside_them(
    name: Any, tags: Any, metadata: Any, expected: Any
) -> None:
    assert node_name(name, tags, metadata) == expected


TOKENS: list[tuple[Any, Any]] = [
    (response_with({"input_tokens": 1, "output_tokens": 2}, model_name="x"), ("x", 1, 2)),
    (response_with(None), None),
    # Each of several answers to one prompt has the tokens of the call.
    (
        Message(generations=[2 * response_with({"input_tokens": 1, "output_tokens": 2}).generations[0]]),
        ("m", 1, 2),
    ),
    # An answer from the cache has those of the call that it comes from.
    (response_with({"input_tokens": 1, "output_tokens": 2, "total_cost": 0}), None),
    (
        Message(generations=[], llm_output={"token_usage": {"prompt_tokens": 1}, "model_name": "y"}),
        ("y", 1, 0),
    ),
    (Message(generations=None, llm_output={"token_usage": None}), None),
    (Message(), None),
]


@pytest.mark.parametrize(("response", "expected"), TOKENS, ids=range(len(TOKENS)))
def test_tokens_are_counted_if_the_model_reports_them(response: Any, expected: Any) -> None:
    counted = token_usage(response, "m")
    assert (tuple(counted.values()) if counted else None) == expected


def command(**fields: Any) -> Any:
    return type("Command", (), {"graph": None, "update": None, "goto": (), "resume": None, **fields})()


OUTPUTS: list[tuple[Any, Any]] = [
    ({"n": 1}, {"n": 1}),
    ([{"n": 1}], [{"n": 1}]),
    ([command(update={"n": 1})], {"n": 1}),
    (command(update={"n": 1}, goto="write"), {"update": {"n": 1}, "goto": "write"}),
    (command(), {}),
    (None, None),
]


@pytest.mark.parametrize(("outputs", "expected"), OUTPUTS, ids=range(len(OUTPUTS)))
def test_the_output_of_a_node_is_unwrapped(outputs: Any, expected: Any) -> None:
    assert node_output(outputs) == expected


def test_values() -> None:
    human, model = Message(type="human", content=" what? "), Message(type="ai", content="this")
    assert last_question({"messages": [human, model]}) == "what?"
    assert last_question(Message(messages=[human])) == "what?"
    assert (
        last_question({"messages": [model]})
        is last_question({"n": 1})
        is last_question(5)
        is last_question({"messages": "text"})
        is None
    )
    assert tool_output({"a": 1}) == {"a": 1}
    assert interruption(ValueError()) is None
