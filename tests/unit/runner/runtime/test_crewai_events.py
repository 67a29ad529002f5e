"""CrewAI's events and results, in tables."""

from __future__ import annotations

import itertools
from types import SimpleNamespace as Event
from typing import Any

import pytest

from runner.crewyard_runtime.frameworks.call_times import CallTimes
from runner.crewyard_runtime.frameworks.crewai_events import AgentTracker, call_duration
from runner.crewyard_runtime.frameworks.crewai_values import agent_id, missing_inputs, outcome, translate

COOK = Event(role="Cook\n")
TEA = Event(description="make tea ", name="tea")
TURN = {"agent": "Cook", "task": "make tea"}
ASKED = [{"role": "system", "content": "be brief"}, {"role": "user", "content": "what is it"}]
TOOL = {"agent_role": "Cook", "tool_name": "kettle"}
TRANSLATIONS: list[tuple[dict[str, Any], Any]] = [
    ({"type": "agent_execution_started", "agent": COOK, "task": TEA}, ("agent.started", TURN)),
    (
        {"type": "agent_execution_completed", "agent": COOK, "task": TEA, "output": "hot"},
        ("agent.completed", {**TURN, "output": "hot"}),
    ),
    (
        {"type": "agent_execution_error", "agent": COOK, "task": TEA, "error": ""},
        ("agent.error", {**TURN, "error": "It failed without a message."}),
    ),
    (
        {"type": "lite_agent_execution_started", "agent_info": {"role": "Cook"}, "messages": ASKED},
        ("agent.started", {"agent": "Cook", "task": "what is it"}),
    ),
    (
        {"type": "lite_agent_execution_completed", "agent_info": {"role": "Cook"}, "output": "tea"},
        ("agent.completed", {"agent": "Cook", "task": None, "output": "tea"}),
    ),
    (
        {"type": "tool_usage_started", **TOOL, "tool_args": '{"cups": 2}'},
        ("tool.called", {"agent": "Cook", "tool": "kettle", "input": {"cups": 2}}),
    ),
    (
        {"type": "tool_usage_started", **TOOL, "tool_args": "{two cups"},
        ("tool.called", {"agent": "Cook", "tool": "kettle", "input": "{two cups"}),
    ),
    (
        {"type": "tool_usage_finished", **TOOL, "output": ["hot"]},
        ("tool.result", {"agent": "Cook", "tool": "kettle", "output": ["hot"]}),
    ),
    (
        {"type": "tool_usage_finished", **TOOL, "output": "?", "failure": Event(message="no water")},
        ("tool.error", {"agent": "Cook", "tool": "kettle", "error": "no water"}),
    ),
    (
        {"type": "tool_usage_error", **TOOL, "error": ValueError("dry")},
        ("tool.error", {"agent": "Cook", "tool": "kettle", "error": "dry"}),
    ),
    (
        {"type": "tool_selection_error", **TOOL, "error": "there is no kettle"},
        ("tool.error", {"agent": "Cook", "tool": "kettle", "error": "there is no kettle"}),
    ),
    (
        {"type": "llm_call_completed", "model": "m", "usage": {"prompt_tokens": 3, "completion_tokens": 4}},
        ("usage", {"model": "m", "prompt_tokens": 3, "completion_tokens": 4}),
    ),
    (
        {"type": "llm_call_completed", "model": "m", "usage": {"input_tokens": 3}},
        ("usage", {"model": "m", "prompt_tokens": 3, "completion_tokens": 0}),
    ),
    (
        {
            "type": "llm_call_completed",
            "model": "m",
            "usage": {"prompt_token_count": 3, "candidates_token_count": 1, "total_token_count": 9},
        },
        ("usage", {"model": "m", "prompt_tokens": 3, "completion_tokens": 6}),
    ),
    ({"type": "llm_call_completed", "model": "m", "usage": None}, None),
    ({"type": "llm_call_completed", "model": "m", "usage": {"seconds": 3}}, None),
    ({"type": "crew_kickoff_started"}, None),
    ({"type": "mcp_tool_execution_started", **TOOL}, None),
    ({}, None),
]


@pytest.mark.parametrize(("fields", "expected"), TRANSLATIONS, ids=range(len(TRANSLATIONS)))
def test_events_are_translated(fields: dict[str, Any], expected: Any) -> None:
    assert translate(Event(**fields)) == expected


def test_a_model_call_is_measured_by_its_id() -> None:
    times = CallTimes(itertools.count(0, 1_000_000).__next__)
    events = [
        *(("llm_call_started", "a"), ("llm_call_started", "b"), ("llm_stream_chunk", "a")),
        *(("llm_call_completed", "a"), ("llm_call_completed", "a"), ("llm_call_failed", "b")),
    ]
    took = [call_duration(Event(type=kind, call_id=call), times) for kind, call in events]
    assert took == [{}, {}, {}, {"duration_ms": 2}, {}, {"duration_ms": 2}]


@pytest.mark.parametrize("call", [{}, {"call_id": None}])
def test_model_calls_without_an_id_have_no_duration(call: dict[str, Any]) -> None:
    times = CallTimes()
    assert [
        call_duration(Event(type=kind, **call), times) for kind in ("llm_call_started", "llm_call_completed")
    ] == [{}, {}]


def test_each_start_has_one_end() -> None:
    tracker = AgentTracker()
    start, end = ("agent.started", dict(TURN)), ("agent.error", {**TURN, "error": "down"})
    assert [tracker.admits(*item) for item in (end, start, end, end, start, start, end, end, end)] == [
        False, True, True, False, True, True, True, True, False,
    ]  # fmt: skip


def test_an_end_without_its_task_gets_it_from_the_start() -> None:
    tracker = AgentTracker()
    tracker.admits("agent.started", dict(TURN))
    end: dict[str, object] = {"agent": "Cook", "task": None, "output": "tea"}
    assert tracker.admits("agent.completed", end)
    assert end["task"] == "make tea"


def test_agents_of_one_role_at_the_same_time_have_their_own_ends() -> None:
    """An agent without a crew and one in a crew: the end of the former has no task."""
    tracker = AgentTracker()
    alone = {"agent_info": {"id": "1", "role": "Cook"}}
    cook = Event(id="2", role="Cook")
    in_crew = {"agent": cook, "task": Event(description="bake bread")}
    events = [
        Event(type="lite_agent_execution_started", messages="make tea", **alone),
        Event(type="agent_execution_started", **in_crew),
        Event(type="lite_agent_execution_completed", output="tea", **alone),
        Event(type="agent_execution_completed", output="bread", **in_crew),
    ]
    reported = []
    for event in events:
        kind, data = translate(event) or ("", {})
        assert tracker.admits(kind, data, agent_id(event))
        reported.append((kind, data["task"], data.get("output")))
    assert reported[2:] == [
        ("agent.completed", "make tea", "tea"), ("agent.completed", "bake bread", "bread"),
    ]  # fmt: skip


def test_a_repeated_rejection_is_reported_once() -> None:
    tracker = AgentTracker()
    called = {"agent": "Cook", "tool": "kettle", "input": {}}
    error = {"agent": "Cook", "tool": "kettle", "error": "dry"}
    other = {**error, "agent": "Waiter"}
    events = [("tool.error", error), ("tool.error", error), ("tool.error", other), ("tool.called", called)]
    assert [tracker.admits(kind, dict(data)) for kind, data in [*events, ("tool.error", error)]] == [
        True, False, True, True, True,
    ]  # fmt: skip


def test_parallel_tool_failures_have_one_end_per_call() -> None:
    """Two branches of a flow with agents of the same role, where both calls start before one ends."""
    tracker = AgentTracker()
    called = ("tool.called", {"agent": "Cook", "tool": "kettle", "input": {}})
    error = ("tool.error", {"agent": "Cook", "tool": "kettle", "error": "dry"})
    result = ("tool.result", {"agent": "Cook", "tool": "kettle", "output": "hot"})
    order = [called, called, error, error, error, called, called, result, error, error]
    admitted = [tracker.admits(kind, dict(data)) for kind, data in order]
    assert admitted == [True, True, True, True, False, True, True, True, True, False]


def crew_output(**fields: Any) -> Any:
    kind = type("CrewOutput", (), {"pydantic": None, "json_dict": None, "raw": "text", **fields})
    kind.__module__ = "crewai.crews.crew_output"
    return kind()


OUTCOMES: list[tuple[Any, Any]] = [
    (crew_output(), "text"),
    (crew_output(json_dict={"a": 1}), {"a": 1}),
    (crew_output(pydantic="model", json_dict={"a": 1}), "model"),
    ([crew_output()], ["text"]),
    ({"report": {"of": crew_output()}, "n": 1}, {"report": {"of": "text"}, "n": 1}),
    ("plain", "plain"),
    (None, None),
]


@pytest.mark.parametrize(("value", "expected"), OUTCOMES, ids=range(len(OUTCOMES)))
def test_only_the_final_result_of_a_crew_is_its_output(value: Any, expected: Any) -> None:
    assert outcome(value) == expected


def test_a_streaming_crew_is_read_to_its_end() -> None:
    class Session:
        result: Any = None

        def __iter__(self) -> Any:
            yield "chunk"
            self.result = crew_output()

    Session.__module__ = "crewai.types.streaming"
    assert outcome(Session()) == "text"


PLACEHOLDERS: list[tuple[Any, dict[str, object], list[str]]] = [
    (Event(fetch_inputs=lambda: {"topic", "year"}), {}, ["topic", "year"]),
    (Event(fetch_inputs=lambda: {"topic"}), {"year": 1}, []),  # CrewAI reports it
    (Event(fetch_inputs=lambda: {"topic"}, before_kickoff_callbacks=[print]), {}, []),
    (Event(fetch_inputs=lambda: {'"name": "x"'}), {}, []),  # JSON in a task's text
    (Event(), {}, []),
]


@pytest.mark.parametrize(("crew", "inputs", "expected"), PLACEHOLDERS, ids=range(len(PLACEHOLDERS)))
def test_placeholders_without_an_input_are_found(crew: Any, inputs: Any, expected: Any) -> None:
    assert missing_inputs(crew, inputs) == expected
