"""Reports CrewAI's events as agent, tool and usage events of the run. Called by `import_watch`.

CrewAI calls listeners in a thread pool, in any order. This module reports in the emitting thread, before the
listeners, so the events have the order in which they happen among the crew's lines and events.
"""

from __future__ import annotations

import functools
from _thread import allocate_lock

from ..events import report
from .call_times import CallTimes
from .crewai_values import agent_id, output_file, translate

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any

    from .crewai_values import RunEvent

# A run has no terminal and no user to prompt.
DEFAULTS = {
    "CREWAI_DISABLE_TELEMETRY": "true",
    "CREWAI_TRACING_ENABLED": "false",
    "CREWAI_DISABLE_VERSION_CHECK": "true",
}
_MARK = "__crewyard__"
_MAX_DECLARED_FILES = 100
_MAX_PATH_CHARS = 1024
declared_files: dict[str, None] = {}
"""The files that tasks write their outputs to; kept as artifacts."""


def skip_first_traces(module: ModuleType) -> None:
    """Let no execution be the first of a user, whose traces CrewAI collects unasked and then offers to show.

    Its question waits 20 s for a terminal, in many versions in spite of the variables.
    """
    module.is_first_execution = lambda: False  # type: ignore[attr-defined]


def hook_event_bus(module: ModuleType) -> None:
    """Report the events of CrewAI's bus from now on; a second call has no effect."""
    bus = module.CrewAIEventsBus
    emit = bus.emit
    if hasattr(emit, _MARK):
        return
    tracker, times = AgentTracker(), CallTimes()

    @functools.wraps(emit)
    def report_and_emit(self: Any, source: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            event = args[0] if args else kwargs.get("event")
            if (path := output_file(event)) and len(declared_files) < _MAX_DECLARED_FILES:
                declared_files[path[:_MAX_PATH_CHARS]] = None
            run_event, took = translate(event), call_duration(event, times)
            if run_event is not None and tracker.admits(*run_event, agent_id(event)):
                type, data = run_event
                report(type, {**data, **took})
        except Exception:  # skip an event of an unknown version
            pass
        return emit(self, source, *args, **kwargs)

    setattr(report_and_emit, _MARK, True)
    bus.emit = report_and_emit


def call_duration(event: Any, times: CallTimes) -> dict[str, object]:
    """Return the duration of the model call that the event ends; none without an id, as in old versions."""
    kind, call = getattr(event, "type", None), getattr(event, "call_id", None)
    if kind == "llm_call_started" and call is not None:
        times.begin(call)
    return times.end(call) if kind in ("llm_call_completed", "llm_call_failed") else {}


class AgentTracker:
    """Tracks the agents to report one end per start and no duplicates.

    CrewAI emits some failures on every level they pass, rejects a tool's input several times before it
    reports that to the model, and omits the task at the end of an agent without a crew.
    """

    def __init__(self) -> None:
        self._tasks: dict[object, list[object]] = {}
        self._last: dict[object, RunEvent] = {}
        self._calls: dict[tuple[object, object], int] = {}
        self._lock = allocate_lock()

    def admits(self, type: str, data: dict[str, object], agent_id: str | None = None) -> bool:
        """Return whether to report the event: not the end of an agent that has not started, nor a repeated
        rejection. `agent_id` tells agents of one role apart.
        """
        if "agent" not in data:
            return True
        with self._lock:
            if type.startswith("agent."):
                return self._admits_agent_event(type, data, agent_id)
            return self._admits_tool_event(type, data)

    def _admits_tool_event(self, type: str, data: dict[str, object]) -> bool:
        """Admit a rejection, a repetition only if no call is open: branches of a flow may fail alike."""
        call = data["agent"], data.get("tool")
        open_calls = self._calls.get(call, 0)
        if type == "tool.called":
            self._calls[call] = open_calls + 1
        elif open_calls > 1:
            self._calls[call] = open_calls - 1
        else:
            self._calls.pop(call, None)
        repeated = type == "tool.error" and not open_calls and self._last.get(data["agent"]) == (type, data)
        self._last[data["agent"]] = (type, data)
        return not repeated

    def _admits_agent_event(self, type: str, data: dict[str, object], agent_id: str | None) -> bool:
        key = data["agent"], agent_id
        if type == "agent.started":
            self._tasks.setdefault(key, []).append(data["task"])
            return True
        tasks = self._tasks.get(key, [])
        if data["task"] is None and tasks:
            data["task"] = tasks[-1]
        if data["task"] not in tasks:
            return False
        tasks.remove(data["task"])
        if not tasks:
            del self._tasks[key]
        return True
