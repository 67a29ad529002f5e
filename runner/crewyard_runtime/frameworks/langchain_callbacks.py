"""Reports LangChain's callbacks as agent, tool and usage events of the run. Called by `import_watch`.

The handler is the default of a context variable that LangChain reads at every `invoke`, `stream` and `batch`:
so it applies in all threads and tasks, and LangChain adds it only once to nested calls. A node of a LangGraph
graph is an agent; the graph, its branches and plain runnables are not.
"""

from __future__ import annotations

import sys

from ..events import error_text, report
from .call_times import CallTimes
from .langchain_values import (
    interruption,
    last_question,
    node_name,
    node_output,
    step_name,
    token_usage,
    tool_output,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_MAX_OPEN_CALLS = 10_000  # calls without an end; beyond that the oldest is evicted
_installed: list[object] = []
_interrupts: dict[object, list[object]] = {}  # of a graph's own nodes, by the id of its call


def install_handler(context: Any) -> None:
    """Report LangChain's callbacks from now on; a second call has no effect.

    `context` is the module langchain_core.tracers.context, which the first `invoke` imports at the latest.
    """
    if _installed:
        return
    from contextvars import ContextVar

    base: Any = sys.modules["langchain_core.callbacks.base"]
    handler = type("CrewyardHandler", (LangChainHandler, base.BaseCallbackHandler), {})()
    context.register_configure_hook(ContextVar("crewyard_handler", default=handler), inheritable=True)
    _installed.append(handler)


def interrupt_of(run_id: object) -> list[object] | None:
    """Return the questions at which this call of a graph stopped; None if it did not."""
    return _interrupts.pop(run_id, None)


class LangChainHandler:
    """The callback handler. It matches the start and end of a call by LangChain's run id."""

    raise_error = False  # read by LangChain: it logs an exception of the handler, and the crew continues
    run_inline = True  # read by LangChain: call in the same task, not in a thread pool, to keep the order

    def __init__(self) -> None:
        self._open: dict[object, dict[str, object]] = {}
        self._names: dict[object, str] = {}
        self._call_times = CallTimes()

    def on_chain_start(
        self, serialized: Any, inputs: Any, *, run_id: Any, parent_run_id: Any = None, tags: Any = None,
        metadata: Any = None, name: str | None = None, **_: Any,
    ) -> None:  # fmt: skip
        """Handle the start of a graph, a node, or another runnable."""
        node = node_name(name, tags, metadata)
        if node is None:
            _remember(self._names, run_id, name or "")
            return
        task = last_question(inputs) or step_name(metadata, self._names.get(parent_run_id))
        agent: dict[str, object] = {"agent": node, "task": task}
        _remember(self._open, run_id, agent)
        report("agent.started", agent)

    def on_chain_end(self, outputs: Any, *, run_id: Any, **_: Any) -> None:
        """Handle the end of a node or another runnable."""
        self._names.pop(run_id, None)
        if (agent := self._open.pop(run_id, None)) is not None:
            report("agent.completed", {**agent, "output": node_output(outputs)})

    def on_chain_error(
        self, error: BaseException, *, run_id: Any, parent_run_id: Any = None, **_: Any
    ) -> None:
        """Handle a failed node, or one that raised LangGraph's exception for a jump or an interrupt."""
        self._names.pop(run_id, None)
        if (agent := self._open.pop(run_id, None)) is None:
            return
        jump = interruption(error)
        if isinstance(jump, dict) and "interrupt" in jump:
            _remember(_interrupts, parent_run_id, jump["interrupt"])
        if jump is not None:
            report("agent.completed", {**agent, "output": jump})
        else:
            report("agent.error", {**agent, "error": error_text(error)})

    def on_tool_start(
        self, serialized: Any, input_str: Any, *, run_id: Any, metadata: Any = None, inputs: Any = None,
        name: str | None = None, **_: Any,
    ) -> None:  # fmt: skip
        """Handle the start of a tool called by a ToolNode, by code of a node, or without a graph."""
        fields = metadata if isinstance(metadata, dict) else {}
        description = serialized if isinstance(serialized, dict) else {}
        tool: dict[str, object] = {
            "agent": fields.get("langgraph_node"),
            "tool": name or description.get("name") or "tool",
        }
        _remember(self._open, run_id, tool)
        report("tool.called", {**tool, "input": input_str if inputs is None else inputs})

    def on_tool_end(self, output: Any, *, run_id: Any, **_: Any) -> None:
        """Handle the result of a tool."""
        if (tool := self._open.pop(run_id, None)) is not None:
            report("tool.result", {**tool, "output": tool_output(output)})

    def on_tool_error(self, error: BaseException, *, run_id: Any, **_: Any) -> None:
        """Handle an exception of a tool, also if a ToolNode returns it to the model."""
        if (tool := self._open.pop(run_id, None)) is None:
            return
        jump = interruption(error)
        if jump is not None:
            report("tool.result", {**tool, "output": jump})
        else:
            report("tool.error", {**tool, "error": error_text(error)})

    def on_chat_model_start(
        self, serialized: Any, messages: Any, *, run_id: Any, metadata: Any = None, **more: Any
    ) -> None:
        """Remember the name of the model, and when the call began."""
        fields = metadata if isinstance(metadata, dict) else {}
        invocation = more.get("invocation_params")
        params = invocation if isinstance(invocation, dict) else {}
        model = fields.get("ls_model_name") or params.get("model") or params.get("model_name")
        _remember(self._names, run_id, str(model or ""))
        self._call_times.begin(run_id)

    on_llm_start = on_chat_model_start

    def on_llm_end(self, response: Any, *, run_id: Any, **_: Any) -> None:
        """Report token usage, if the model reports it."""
        model, took = self._names.pop(run_id, ""), self._call_times.end(run_id)
        if (used := token_usage(response, model)) is not None:
            report("usage", {**used, **took})

    def on_llm_error(self, error: BaseException, *, run_id: Any, **_: Any) -> None:
        """Forget the call; the failing node or crew reports the error."""
        self._names.pop(run_id, None)
        self._call_times.end(run_id)


def _remember(description: dict[object, Any], run_id: object, value: Any) -> None:
    description[run_id] = value
    if len(description) > _MAX_OPEN_CALLS:
        description.pop(next(iter(description)), None)
