"""Events become steps as in the console's timeline."""

from datetime import UTC, datetime

import pytest

from api.telemetry import steps as steps_module
from api.telemetry.steps import StepReader
from tests.unit.api.telemetry.trace_rows import at, stamp


def read(*events: tuple[str, dict], content: bool = False) -> list[tuple]:
    """Return kind, name, parent, seconds of start and end, and status of the steps."""
    reader = StepReader(content)
    for number, (type, data) in enumerate(events, 2):
        reader.add(type, number, data)
    found = reader.finish(at(0), at(100))
    return [
        (step.kind, step.number, step.parent, step.name, seconds(step.start), seconds(step.end), step.status)
        for step in found
    ]


def seconds(moment: datetime | None) -> float:
    assert moment is not None
    return (moment - at(0)).total_seconds()


def started(time: float, agent: str = "writer", task: object = "write") -> tuple[str, dict]:
    return "agent.started", stamp(time, agent=agent, task=task)


def completed(time: float, agent: str = "writer", task: object = "write") -> tuple[str, dict]:
    return "agent.completed", stamp(time, agent=agent, task=task, output="done")


def called(time: float, tool: str = "search", agent: object = "writer") -> tuple[str, dict]:
    return "tool.called", stamp(time, agent=agent, tool=tool, input={"q": "tides"})


def result(time: float, tool: str = "search", agent: object = "writer") -> tuple[str, dict]:
    return "tool.result", stamp(time, agent=agent, tool=tool, output="found")


def tool_error(time: float) -> tuple[str, dict]:
    return "tool.error", stamp(time, agent="writer", tool="search", error="no")


def usage(time: float, **more: object) -> tuple[str, dict]:
    return "usage", stamp(time, **{"model": "small", "prompt_tokens": 7, "completion_tokens": 2, **more})


AGENT = ("invoke_agent", 2, None, "writer", 1, 9, "succeeded")


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        ([], []),
        ([started(1), completed(9)], [AGENT]),
        # A tool and a model call of the only open task.
        (
            [started(1), called(2), result(3), usage(4), completed(9)],
            [
                AGENT,
                ("execute_tool", 3, 2, "search", 2, 3, "succeeded"),
                ("chat", 5, 2, "small", 4, 4, "succeeded"),
            ],
        ),
        # A model call with a duration begins before its event.
        (
            [started(1), usage(4, duration_ms=1500), completed(9)],
            [AGENT, ("chat", 3, 2, "small", 2.5, 4, "succeeded")],
        ),
        # One that is longer than the crew ran begins with it, and none begins after its end.
        ([usage(4, duration_ms=60_000)], [("chat", 2, None, "small", 0, 4, "succeeded")]),
        ([usage(-4, duration_ms=60_000)], [("chat", 2, None, "small", -4, -4, "succeeded")]),
        # With two open tasks a model call belongs to the run: the event does not name its agent.
        (
            [started(1), started(1, "editor"), usage(4), completed(9), completed(9, "editor")],
            [
                AGENT,
                ("invoke_agent", 3, None, "editor", 1, 9, "succeeded"),
                ("chat", 4, None, "small", 4, 4, "succeeded"),
            ],
        ),
        # Two tasks of one agent end by their task, not by their order.
        (
            [started(1), started(2, task="check"), completed(3), completed(4, task="check")],
            [
                ("invoke_agent", 2, None, "writer", 1, 3, "succeeded"),
                ("invoke_agent", 3, None, "writer", 2, 4, "succeeded"),
            ],
        ),
        # An end with another text is that of the last one.
        ([started(1), completed(9, task="other")], [AGENT]),
        # Calls of one tool end in their order.
        (
            [called(1), called(2), result(3), tool_error(4)],
            [
                ("execute_tool", 2, None, "search", 1, 3, "succeeded"),
                ("execute_tool", 3, None, "search", 2, 4, "failed"),
            ],
        ),
        # A tool after its agent's end is that of its last task; one without a start has no duration.
        (
            [started(1), completed(9), result(10)],
            [AGENT, ("execute_tool", 4, 2, "search", 10, 10, "succeeded")],
        ),
        ([completed(9)], [("invoke_agent", 2, None, "writer", 9, 9, "succeeded")]),
        # What is open at the end of the run was canceled.
        ([started(1)], [("invoke_agent", 2, None, "writer", 1, 100, "canceled")]),
        ([("agent.error", stamp(5, agent="writer", task="write", error="no"))],
         [("invoke_agent", 2, None, "writer", 5, 5, "failed")]),
        # Clocks may differ: no step ends before its start.
        ([started(9), completed(1)], [("invoke_agent", 2, None, "writer", 9, 9, "succeeded")]),
        # Crews write events themselves.
        ([("agent.started", {"timestamp": "never"}), ("log", stamp(1, message="x"))], []),
        (
            [("agent.started", stamp(1)), ("tool.called", stamp(2)), ("usage", stamp(3, model=None))],
            [
                ("invoke_agent", 2, None, "agent", 1, 100, "canceled"),
                ("execute_tool", 3, 2, "tool", 2, 100, "canceled"),
                ("chat", 4, 2, "", 3, 3, "succeeded"),
            ],
        ),
    ],
)  # fmt: skip
def test_pairs_of_starts_and_ends(events, expected):
    assert read(*events) == expected


def test_content_is_read_only_if_wanted_and_bounded(monkeypatch):
    events = [called(1), result(2)]
    for content, expected in ((False, (None, None)), (True, ('{"q": "tides"}', "found"))):
        reader = StepReader(content)
        for number, (type, data) in enumerate(events, 2):
            reader.add(type, number, data)
        [step] = reader.finish(at(0), at(9))
        assert (step.input, step.output) == expected
    monkeypatch.setattr(steps_module, "MAX_TOTAL_CONTENT_CHARACTERS", 16)
    reader = StepReader(True)
    for number in range(2, 9):
        reader.add("tool.result", number, stamp(1, agent="writer", tool="search", output="0123456789"))
    assert [len(step.output or "") for step in reader.finish(at(0), at(9))] == [10, 6, 0, 0, 0, 0, 0]


def test_steps_and_open_steps_are_bounded(monkeypatch):
    monkeypatch.setattr(steps_module, "MAX_STEPS", 5)
    monkeypatch.setattr(steps_module, "MAX_OPEN_STEPS", 2)
    reader = StepReader()
    for number in range(2, 12):
        reader.add("tool.called", number, stamp(number, tool=f"tool-{number}"))
    reader.add("tool.result", 12, stamp(20, tool="tool-6"))
    found = reader.finish(at(0), at(50))
    assert [step.name for step in found] == ["tool-2", "tool-3", "tool-4", "tool-5", "tool-6"]
    assert [step.status for step in found] == ["canceled"] * 4 + ["succeeded"]
    assert reader.dropped == 5


@pytest.mark.parametrize("value", [-1, 7 * 24 * 3_600_000 + 1, 2**70, 1.5, "1500", True, None, [1500]])
def test_what_is_no_duration_changes_nothing(value):
    assert read(usage(4, duration_ms=value)) == read(usage(4))


def test_a_time_of_the_first_year_is_the_start_and_the_end():
    reader = StepReader()
    reader.add("usage", 2, {"timestamp": "0001-01-01T00:00:00Z", "duration_ms": 60_000})
    [step] = reader.finish(at(0), at(9))
    assert step.start == step.end == datetime.min.replace(tzinfo=UTC)


@pytest.mark.parametrize("count", [-1, 10**9 + 1, "7", True, 1.5, None])
def test_counts_that_are_none_are_left_out(count):
    reader = StepReader()
    reader.add(*("usage", 2, usage(1, prompt_tokens=count)[1]))
    [step] = reader.finish(at(0), at(9))
    assert (step.prompt_tokens, step.completion_tokens) == (None, 2)
