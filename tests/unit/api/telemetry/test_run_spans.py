"""The spans of runs: a table, and what holds for any events."""

import json
from datetime import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from api.prices import Prices, parse_prices
from api.telemetry import otlp
from api.telemetry.run_spans import run_spans
from api.telemetry.span import Span
from api.telemetry.steps import StepReader
from api.v1.runs import view
from crds.runs import trace_context
from tests.unit.api.telemetry.trace_rows import at, run_row, stamp

PARENT = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


def spans(row, *events: tuple[str, dict], content: bool = False, prices: Prices | None = None) -> list[Span]:
    reader = StepReader(content)
    for number, (type, data) in enumerate(events, 2):
        reader.add(type, number, data)
    return list(run_spans(row, reader, content, prices))


def seconds(moment: datetime) -> float:
    return (moment - at(0)).total_seconds()


def outline(found: list[Span]) -> list[tuple]:
    """Return name, name of the parent, seconds of start and end, and error."""
    names = {span.span_id: span.name for span in found}
    return [
        (span.name, names.get(span.parent_id or ""), seconds(span.start), seconds(span.end), span.error)
        for span in found
    ]


def test_a_run_has_its_queue_its_start_and_its_crew():
    found = spans(
        run_row(),
        ("agent.started", stamp(6, agent="writer", task="write")),
        ("tool.called", stamp(7, agent="writer", tool="search", input={"q": "tides"})),
        ("tool.error", stamp(8, agent="writer", tool="search", error="no network")),
        (
            "usage",
            stamp(9, model="openai/gpt-5", prompt_tokens=70, completion_tokens=9, duration_ms=750),
        ),
        ("agent.completed", stamp(60, agent="writer", task="write", output="Two a day.")),
    )
    assert outline(found) == [
        ("run demo", None, 0, 65, None),
        ("queue", "run demo", 0, 1.75, None),
        ("pod start", "run demo", 1.75, 5, None),
        ("invoke_workflow demo", "run demo", 5, 65, None),
        ("invoke_agent writer", "invoke_workflow demo", 6, 60, None),
        ("execute_tool search", "invoke_agent writer", 7, 8, "failed"),
        ("chat openai/gpt-5", "invoke_agent writer", 8.25, 9, None),
    ]
    identity = {"crewyard.run.id": "run_a", "crewyard.project": "demo", "crewyard.deployment.id": "dep_a"}
    root, _, _, crew, agent, tool, chat = shown = [dict(span.attributes) for span in found]
    kinds = [attributes.pop("openinference.span.kind") for attributes in shown]
    assert kinds == ["CHAIN"] * 4 + ["AGENT", "TOOL", "LLM"]
    assert root == {**identity, "crewyard.run.status": "succeeded", "crewyard.run.label.team": "tides"}
    assert crew == {
        **identity, "gen_ai.operation.name": "invoke_workflow", "gen_ai.workflow.name": "demo",
    }  # fmt: skip
    assert agent == {
        **identity, "gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "writer",
        "crewyard.step.status": "succeeded",
    }  # fmt: skip
    assert tool == {
        **identity, "gen_ai.operation.name": "execute_tool", "gen_ai.agent.name": "writer",
        "gen_ai.tool.name": "search", "crewyard.step.status": "failed", "error.type": "_OTHER",
    }  # fmt: skip
    assert chat == {
        **identity, "gen_ai.operation.name": "chat", "gen_ai.agent.name": "writer",
        "gen_ai.provider.name": "openai", "gen_ai.request.model": "openai/gpt-5",
        "gen_ai.usage.input_tokens": 70, "gen_ai.usage.output_tokens": 9,
        "crewyard.step.status": "succeeded",
    }  # fmt: skip
    assert [span.is_client for span in found] == [False] * 6 + [True]


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        (
            {"status": "failed", "error": {"reason": "CrewError", "message": "ValueError: no tide"}},
            [
                ("run demo", None, 0, 65, "CrewError"),
                ("queue", "run demo", 0, 1.75, None),
                ("pod start", "run demo", 1.75, 5, None),
                ("invoke_workflow demo", "run demo", 5, 65, "CrewError"),
            ],
        ),
        (
            {"status": "canceled", "started_at": None, "admitted_at": None, "duration_ms": None},
            [("run demo", None, 0, 64.75, None), ("queue", "run demo", 0, 64.75, None)],
        ),
        (
            {"status": "failed", "started_at": None, "error": {"reason": "StartTimeout", "message": "late"}},
            [
                ("run demo", None, 0, 64.75, "StartTimeout"),
                ("queue", "run demo", 0, 1.75, None),
                ("pod start", "run demo", 1.75, 64.75, "StartTimeout"),
            ],
        ),
        # Whole seconds before the exact time of creation and after that of the start.
        (
            {"admitted_at": at(-1), "duration_ms": 0},
            [
                ("run demo", None, 0, 5, None),
                ("queue", "run demo", 0, 0, None),
                ("pod start", "run demo", 0, 5, None),
                ("invoke_workflow demo", "run demo", 5, 5, None),
            ],
        ),
        ({"uid": None}, []),
    ],
)
def test_endings(fields, expected):
    found = spans(run_row(**fields))
    assert outline(found) == expected
    for span in found:
        assert ("error.type" in span.attributes) == (span.error is not None)


def costs(found: list[Span]) -> dict[str, dict]:
    """Return the attributes of costs by the span's name."""
    wanted = ("cost", "currency")
    cost = {
        span.name: {key: value for key, value in span.attributes.items() if key.endswith(wanted)}
        for span in found
    }
    return {name: attributes for name, attributes in cost.items() if attributes}


CALL = ("usage", stamp(9, model="gpt-5", prompt_tokens=1_000_000, completion_tokens=1000))
PRICES = '{"currency": "EUR", "per_run_hour": 0.6, "per_million_prompt_tokens": 2, "per_artifact_gib": 1}'


def test_costs_are_those_of_the_api():
    row = run_row(prompt_tokens=1_000_000, completion_tokens=1000, artifact_bytes=1 << 29)
    prices = parse_prices(PRICES)
    found = costs(spans(row, CALL, ("usage", stamp(10, model="free")), prices=prices))
    assert found == {
        "run demo": {"crewyard.run.cost": 2.51, "crewyard.run.currency": "EUR"},
        "chat gpt-5": {"crewyard.step.cost": 2.0, "crewyard.step.currency": "EUR"},
    }
    shown = view.usage(row, prices)
    assert shown is not None and shown["cost"] == found["run demo"]["crewyard.run.cost"]


@pytest.mark.parametrize(
    ("prices", "tokens", "expected"),
    [("", 7, []), (PRICES, None, ["chat gpt-5"]), ('{"currency": "EUR", "per_run": 1}', 7, ["run demo"])],
)
def test_what_has_no_price_or_no_numbers_has_no_cost(prices, tokens, expected):
    row = run_row(prompt_tokens=tokens, completion_tokens=tokens)
    assert list(costs(spans(row, CALL, prices=parse_prices(prices)))) == expected


def test_a_call_costs_the_price_of_its_model():
    prices = parse_prices('{"currency": "EUR", "models": {"gpt-5": {"per_million_prompt_tokens": 3}}}')
    assert costs(spans(run_row(), CALL, prices=prices))["chat gpt-5"]["crewyard.step.cost"] == 3.0


@pytest.mark.parametrize("count", [10**9 + 1, 2**63 - 1, -1, "7"])
def test_tokens_that_the_usage_does_not_count_cost_nothing(count):
    call = ("usage", stamp(9, model="gpt-5", prompt_tokens=count, completion_tokens=0))
    found = costs(spans(run_row(), call, prices=parse_prices(PRICES)))
    assert found["chat gpt-5"]["crewyard.step.cost"] == 0


@pytest.mark.parametrize(
    ("content", "expected"),
    [(False, ["CrewError", "CrewError", "failed"]), (True, ["no ant@example.com"] * 3)],
)
def test_messages_of_errors_are_content(content, expected):
    message = "no ant@example.com"
    row = run_row(status="failed", error={"reason": "CrewError", "message": message})
    found = spans(row, ("tool.error", stamp(8, tool="search", error=message)), content=content)
    assert [span.error for span in found if span.error] == expected
    assert content or message not in repr(found)


def test_the_callers_span_is_the_parent():
    found = spans(run_row(traceparent=PARENT))
    assert {span.trace_id for span in found} == {"4bf92f3577b34da6a3ce929d0e0e4736"}
    assert found[0].parent_id == "00f067aa0ba902b7"
    crew = trace_context.parse(trace_context.crew_context(PARENT, "uid-1", True))
    assert crew is not None
    assert (crew.trace_id, crew.span_id) == (found[3].trace_id, found[3].span_id)


def test_content_is_in_the_spans_only_if_wanted():
    events = [
        ("agent.started", stamp(6, agent="writer", task="write")),
        ("agent.completed", stamp(7, agent="writer", task="write", output={"text": "done"})),
    ]
    assert "tides" not in str([span.attributes for span in spans(run_row(labels=None), *events)])
    run, *_, crew, agent = spans(run_row(), *events, content=True)
    text = '[{"role": "user", "parts": [{"type": "text", "content": "{\\"topic\\": \\"tides\\"}"}]}]'
    assert crew.attributes["gen_ai.input.messages"] == text
    [answer] = json.loads(str(crew.attributes["gen_ai.output.messages"]))
    part = {"type": "text", "content": '{"report": "Two a day."}'}
    # The conventions' schema asks for a reason: viewers ignore messages without.
    assert answer == {"role": "assistant", "finish_reason": "stop", "parts": [part]}
    for span in (run, crew):
        assert span.attributes["input.value"] == '{"topic": "tides"}'
        assert span.attributes["output.value"] == '{"report": "Two a day."}'
    assert agent.attributes["input.value"] == "write"
    assert agent.attributes["output.value"] == '{"text": "done"}'
    assert '"content": "write"' in str(agent.attributes["gen_ai.input.messages"])


_NAMES = st.sampled_from(["writer", "editor", None])
_TOOLS = st.sampled_from(["search", "read", None])
_EVENTS = st.lists(
    st.tuples(
        st.sampled_from(
            [
                "agent.started",
                "agent.completed",
                "agent.error",
                "tool.called",
                "tool.result",
                "tool.error",
                "usage",
                "log",
            ]
        ),
        st.builds(
            stamp,
            st.floats(-100, 200),
            agent=_NAMES,
            tool=_TOOLS,
            task=st.sampled_from(["write", {"a": 1}, None]),
            output=st.text(max_size=5),
            prompt_tokens=st.integers(),
            duration_ms=st.one_of(st.integers(), st.integers(0, 200_000), st.text(max_size=2)),
        ),
    ),
    max_size=40,
)


@given(_EVENTS, st.sampled_from([None, PARENT]), st.booleans())
def test_every_span_has_a_parent_and_ends_after_its_start(events, parent, content):
    row = run_row(traceparent=parent)
    found = spans(row, *events, content=content)
    known = {span.span_id for span in found}
    assert len(known) == len(found)
    given_parent = trace_context.parse(parent)
    assert found[0].parent_id == (given_parent.span_id if given_parent else None)
    assert all(span.parent_id in known for span in found[1:])
    assert len({span.trace_id for span in found}) == 1
    assert all(span.end >= span.start for span in found)
    # A repeated export is the same spans, in the same encoding.
    again = spans(row, *events, content=content)
    assert list(otlp.requests(again, {})) == list(otlp.requests(found, {}))
