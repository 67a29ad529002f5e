"""The steps of a run: its agents' tasks, their tools and model calls, paired from its events. Pure.

Called by `run_spans`. The rules are those of the console's timeline (`api/console/run/steps.js`).
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from api import usage_event
from api.store.token_counts import MAX_TOKENS
from api.telemetry.span import MAX_MESSAGE_CHARACTERS, cut
from crds.times import parse_time

MAX_STEPS = 20_000
"""Further ones are counted only."""
MAX_OPEN_STEPS = 1000
"""Of agents, and of tools; the end of an older one is not recognized."""
MAX_NAME_CHARACTERS, MAX_CONTENT_CHARACTERS = 200, 4000
MAX_TOTAL_CONTENT_CHARACTERS = 4_000_000
"""Of one run; the content of further steps is left out."""


class StepKind(StrEnum):
    """What a step is, by the name of its operation in the conventions."""

    AGENT = "invoke_agent"
    TOOL = "execute_tool"
    MODEL = "chat"


class StepStatus(StrEnum):
    """How a step ended; canceled: the run ended first."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELED = "canceled"


@dataclass
class RunStep:
    """A step. `number` is the id of the event that began it, `parent` that of its parent's, None for the run.

    `input` and `output` are None if content is not read; `error` then only says that it failed.
    """

    kind: StepKind
    number: int
    parent: int | None
    name: str
    start: datetime
    agent: str | None = None
    task_hash: int = 0
    input: str | None = None
    end: datetime | None = None
    status: StepStatus = StepStatus.CANCELED
    output: str | None = None
    error: str | None = None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    duration: timedelta | None = None
    """Of a model call: its only event is at its end."""


class StepReader:
    """Reads a run's events in their order."""

    def __init__(self, content: bool = False) -> None:
        """`content`: whether to keep what agents and tools got and gave."""
        self.steps: list[RunStep] = []
        self.dropped = 0
        self._content_left = MAX_TOTAL_CONTENT_CHARACTERS if content else 0
        self._open_tasks: list[RunStep] = []
        self._open_tools: list[RunStep] = []
        self._last_task: dict[str, RunStep] = {}

    def add(self, type: str, number: int, data: Mapping[str, Any]) -> None:
        """Add an event. A crew writes events too: what is not as documented is ignored."""
        moment = _moment(data)
        if moment is None:
            return
        match type:
            case "agent.started":
                self._start_task(number, moment, data)
            case "agent.completed" | "agent.error":
                self._end_task(number, moment, data, type == "agent.error")
            case "tool.called":
                self._start_tool(number, moment, data)
            case "tool.result" | "tool.error":
                self._end_tool(number, moment, data, type == "tool.error")
            case "usage":
                self._add_model_call(number, moment, data)

    def finish(self, start: datetime, end: datetime) -> list[RunStep]:
        """Return all steps of a crew that ran in this time; those that are still open end with it."""
        for step in self.steps:
            if step.end is None:
                step.end = max(step.start, end)
            elif step.duration is not None:
                # Subtracted only from a later time: a pod may send one from the year 1.
                step.start = step.end - max(timedelta(), min(step.duration, step.end - start))
        self._open_tools, self._open_tasks = [], []
        return self.steps

    def _start_task(self, number: int, moment: datetime, data: Mapping[str, Any]) -> RunStep | None:
        name = _name(data.get("agent"))
        task = self._step(StepKind.AGENT, number, None, name, moment)
        if task is not None:
            task.agent, task.task_hash = name, hash(text_of(data.get("task")))
            task.input = self._content(data.get("task"))
            _add_open(self._open_tasks, task)
            self._last_task[name] = task
        return task

    def _end_task(self, number: int, moment: datetime, data: Mapping[str, Any], failed: bool) -> None:
        name = _name(data.get("agent"))
        of_agent = [task for task in self._open_tasks if task.agent == name]
        task_hash = hash(text_of(data.get("task")))
        same = [task for task in of_agent if task.task_hash == task_hash]
        task = same[0] if same else of_agent[-1] if of_agent else self._start_task(number, moment, data)
        if task is not None:
            self._open_tasks.remove(task)
            self._end(task, moment, data, failed)

    def _start_tool(self, number: int, moment: datetime, data: Mapping[str, Any]) -> RunStep | None:
        name = _name(data.get("tool"), "tool")
        tool = self._step(StepKind.TOOL, number, self._parent_of_tool(data.get("agent")), name, moment)
        if tool is not None:
            tool.agent, tool.input = _optional(data.get("agent")), self._content(data.get("input"))
            _add_open(self._open_tools, tool)
        return tool

    def _end_tool(self, number: int, moment: datetime, data: Mapping[str, Any], failed: bool) -> None:
        name, agent = _name(data.get("tool"), "tool"), _optional(data.get("agent"))
        fitting = (tool for tool in self._open_tools if (tool.name, tool.agent) == (name, agent))
        # A tool that the agent does not have ends without a start.
        tool = next(fitting, None) or self._start_tool(number, moment, data)
        if tool is not None:
            self._open_tools.remove(tool)
            self._end(tool, moment, data, failed)

    def _add_model_call(self, number: int, moment: datetime, data: Mapping[str, Any]) -> None:
        """Add a call of a model, of the open task if only one is open: the event does not name its agent."""
        task = self._open_tasks[0] if len(self._open_tasks) == 1 else None
        name = _name(data.get("model"), "")
        call = self._step(StepKind.MODEL, number, task.number if task else None, name, moment)
        if call is not None:
            call.agent = task.agent if task else None
            call.prompt_tokens = _count(data.get("prompt_tokens"))
            call.completion_tokens = _count(data.get("completion_tokens"))
            took = usage_event.duration_ms(data)
            call.duration = None if took is None else timedelta(milliseconds=took)
            self._end(call, moment, {}, False)

    def _parent_of_tool(self, agent: object) -> int | None:
        """Return the open task of the agent that started last, else its last task, else the run."""
        name = _name(agent)
        found = next((task for task in reversed(self._open_tasks) if task.agent == name), None)
        found = found or self._last_task.get(name)
        return found.number if found else None

    def _end(self, step: RunStep, moment: datetime, data: Mapping[str, Any], failed: bool) -> None:
        step.end = max(step.start, moment)
        step.status = StepStatus.FAILED if failed else StepStatus.SUCCEEDED
        step.output = self._content(data.get("output"))
        if failed:
            # An exception often repeats what the tool got.
            step.error = cut(self._content(data.get("error")) or step.status, MAX_MESSAGE_CHARACTERS)

    def _content(self, value: Any) -> str | None:
        if value is None or not self._content_left:
            return None
        text = cut(text_of(value) or "", min(MAX_CONTENT_CHARACTERS, self._content_left))
        self._content_left -= len(text)
        return text

    def _step(
        self, kind: StepKind, number: int, parent: int | None, name: str, moment: datetime
    ) -> RunStep | None:
        if len(self.steps) >= MAX_STEPS:
            self.dropped += 1
            return None
        step = RunStep(kind, number, parent, name, moment)
        self.steps.append(step)
        return step


def text_of(value: Any) -> str | None:
    """Return a value as text: JSON, unless it is one."""
    return value if value is None or isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _add_open(steps: list[RunStep], step: RunStep) -> None:
    steps.append(step)
    if len(steps) > MAX_OPEN_STEPS:
        del steps[0]


def _count(value: object) -> int | None:
    is_count = isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MAX_TOKENS
    return value if is_count and isinstance(value, int) else None


def _moment(data: Mapping[str, Any]) -> datetime | None:
    try:
        return parse_time(str(data.get("timestamp")))
    except ValueError:
        return None


def _name(value: object, default: str = "agent") -> str:
    return cut(default if value is None else str(value), MAX_NAME_CHARACTERS)


def _optional(value: object) -> str | None:
    return None if value is None else _name(value)
