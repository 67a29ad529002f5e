"""CrewAI's events -> the run's agent, tool and usage events. Called by `watch`.

CrewAI hands an event to its listeners in a pool of threads, so that they see them in any order. What is told
here is told in the emitting thread, before the listeners: in the order in which it happens, among the crew's
own lines and events.
"""

from __future__ import annotations

import functools
import os
from _thread import allocate_lock

from ..events import tell
from .crewai_values import translate

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any

    from .crewai_values import Told

# A run has no terminal and nobody who could be asked; each can be set otherwise by the project's variables.
DEFAULTS = {
    "CREWAI_DISABLE_TELEMETRY": "true",
    "CREWAI_TRACING_ENABLED": "false",
    "CREWAI_DISABLE_VERSION_CHECK": "true",
}
_MARK = "__crewyard__"


def settle() -> None:
    """Sets the defaults of CrewAI's environment that are not set. Before CrewAI is imported: it reads them
    then."""
    for name, value in DEFAULTS.items():
        os.environ.setdefault(name, value)


def join(module: ModuleType) -> None:
    """Tells what CrewAI's bus emits from now on; joining twice is joining once."""
    bus = module.CrewAIEventsBus
    emit = bus.emit
    if hasattr(emit, _MARK):
        return
    work = Work()

    @functools.wraps(emit)
    def and_tell(self: Any, source: Any, *given: Any, **named: Any) -> Any:
        try:
            told = translate(given[0] if given else named.get("event"))
            if told is not None and work.admits(*told):
                tell(*told)
        except Exception:  # an event of a version that we do not know is not told
            pass
        return emit(self, source, *given, **named)

    setattr(and_tell, _MARK, True)
    bus.emit = and_tell


class Work:
    """What the agents are at, so that each start has one end and nothing comes twice.

    CrewAI emits some failures on every level that they pass, refuses a tool's input several times before it
    says so to the model, and no longer says at the end of an agent without a crew what it was asked.
    """

    def __init__(self) -> None:
        self._tasks: dict[object, list[object]] = {}
        self._last: dict[object, Told] = {}
        self._calls: dict[tuple[object, object], int] = {}
        self._lock = allocate_lock()

    def admits(self, type: str, data: dict[str, object]) -> bool:
        """Whether the event is told: not the end of an agent that has not started, nor the same refusal
        again."""
        if "agent" not in data:
            return True
        with self._lock:
            if type.startswith("agent."):
                return self._turn(type, data)
            return self._use(type, data)

    def _use(self, type: str, data: dict[str, object]) -> bool:
        """A refusal is repeated only where no call is open: several branches of a flow may fail alike."""
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

    def _turn(self, type: str, data: dict[str, object]) -> bool:
        tasks = self._tasks.setdefault(data["agent"], [])
        if type == "agent.started":
            tasks.append(data["task"])
            return True
        if data["task"] is None and tasks:
            data["task"] = tasks[-1]
        if data["task"] not in tasks:
            return False
        tasks.remove(data["task"])
        return True
