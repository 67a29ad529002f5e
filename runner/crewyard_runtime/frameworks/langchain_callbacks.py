"""LangChain's callbacks -> the run's agent, tool and usage events. Called by `watch`.

The handler is the default of a context variable that LangChain asks at every `invoke`, `stream` and `batch`:
so it holds in all threads and tasks, and LangChain itself sees to it that nested calls have it once.
A node of a LangGraph graph is an agent; the graph, its branches and plain runnables are none.
"""

from __future__ import annotations

import sys

from ..events import tell
from .langchain_values import asked, interrupted, node_of, node_output, step_of, text, tokens, tool_output

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_MOST_OPEN = 10_000  # calls without an end; above that the oldest is forgotten
_joined: list[object] = []


def join() -> None:
    """Tells what LangChain calls back from now on; joining twice is joining once."""
    if _joined:
        return
    from contextvars import ContextVar
    from importlib import import_module

    base: Any = sys.modules["langchain_core.callbacks.base"]
    handler = type("CrewyardHandler", (Handler, base.BaseCallbackHandler), {})()
    context: Any = import_module("langchain_core.tracers.context")  # the first `invoke` would load it
    context.register_configure_hook(ContextVar("crewyard_handler", default=handler), inheritable=True)
    _joined.append(handler)


class Handler:
    """What LangChain calls. It knows a call from start to end by LangChain's own id of it."""

    raise_error = False  # of LangChain: an exception in here is logged, and the crew goes on
    run_inline = True  # in the calling task, not in a pool of threads: the order is that of what happens

    def __init__(self) -> None:
        self._open: dict[object, dict[str, object]] = {}
        self._names: dict[object, str] = {}

    def on_chain_start(
        self, serialized: Any, inputs: Any, *, run_id: Any, parent_run_id: Any = None, tags: Any = None,
        metadata: Any = None, name: str | None = None, **_: Any,
    ) -> None:  # fmt: skip
        """A graph, a node, or one of the many runnables that are neither."""
        node = node_of(name, tags, metadata)
        if node is None:
            _keep(self._names, run_id, name or "")
            return
        task = asked(inputs) or step_of(metadata, self._names.get(parent_run_id))
        agent: dict[str, object] = {"agent": node, "task": task}
        _keep(self._open, run_id, agent)
        tell("agent.started", agent)

    def on_chain_end(self, outputs: Any, *, run_id: Any, **_: Any) -> None:
        """The end of a node, or of something else."""
        self._names.pop(run_id, None)
        if (agent := self._open.pop(run_id, None)) is not None:
            tell("agent.completed", {**agent, "output": node_output(outputs)})

    def on_chain_error(self, error: BaseException, *, run_id: Any, **_: Any) -> None:
        """A node failed, or left by one of the exceptions that LangGraph uses for jumps and questions."""
        self._names.pop(run_id, None)
        if (agent := self._open.pop(run_id, None)) is None:
            return
        jump = interrupted(error)
        if jump is not None:
            tell("agent.completed", {**agent, "output": jump})
        else:
            tell("agent.error", {**agent, "error": text(error)})

    def on_tool_start(
        self, serialized: Any, input_str: Any, *, run_id: Any, metadata: Any = None, inputs: Any = None,
        name: str | None = None, **_: Any,
    ) -> None:  # fmt: skip
        """A tool, wherever it is called: by a ToolNode, in a node's code, or without a graph."""
        where = metadata if isinstance(metadata, dict) else {}
        kept = serialized if isinstance(serialized, dict) else {}
        tool: dict[str, object] = {
            "agent": where.get("langgraph_node"),
            "tool": name or kept.get("name") or "tool",
        }
        _keep(self._open, run_id, tool)
        tell("tool.called", {**tool, "input": input_str if inputs is None else inputs})

    def on_tool_end(self, output: Any, *, run_id: Any, **_: Any) -> None:
        """What the tool returned."""
        if (tool := self._open.pop(run_id, None)) is not None:
            tell("tool.result", {**tool, "output": tool_output(output)})

    def on_tool_error(self, error: BaseException, *, run_id: Any, **_: Any) -> None:
        """What the tool raised, also where a ToolNode answers the model with it."""
        if (tool := self._open.pop(run_id, None)) is None:
            return
        jump = interrupted(error)
        if jump is not None:
            tell("tool.result", {**tool, "output": jump})
        else:
            tell("tool.error", {**tool, "error": text(error)})

    def on_chat_model_start(
        self, serialized: Any, messages: Any, *, run_id: Any, metadata: Any = None, **more: Any
    ) -> None:
        """Only its model's name is kept."""
        where = metadata if isinstance(metadata, dict) else {}
        given = more.get("invocation_params")
        params = given if isinstance(given, dict) else {}
        model = where.get("ls_model_name") or params.get("model") or params.get("model_name")
        _keep(self._names, run_id, str(model or ""))

    on_llm_start = on_chat_model_start

    def on_llm_end(self, response: Any, *, run_id: Any, **_: Any) -> None:
        """The tokens, where the model says how many."""
        model = self._names.pop(run_id, "")
        if (used := tokens(response, model)) is not None:
            tell("usage", used)

    def on_llm_error(self, error: BaseException, *, run_id: Any, **_: Any) -> None:
        """The node or the crew fails of it, and tells it."""
        self._names.pop(run_id, None)


def _keep(kept: dict[object, Any], run_id: object, value: Any) -> None:
    kept[run_id] = value
    if len(kept) > _MOST_OPEN:
        kept.pop(next(iter(kept)), None)
