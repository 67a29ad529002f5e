"""Reports agent, tool and usage events of LlamaIndex, from its instrumentation. Called by `import_watch`.

Its dispatcher tells of each run of a workflow, of each of its steps, and of each call of a model. The steps
of LlamaIndex's own agents tell which agent works and which tool it calls; a step of the crew is an agent, as
a node of a graph is.
"""

from __future__ import annotations

from ...events import error_text, report
from ..call_times import CallTimes
from .llama_index_workflows import PACKAGES, fields_of, is_kind, is_workflow, result_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any

_MAX_RESPONSES = 100  # whose tokens are known to be counted; beyond that the oldest is evicted
_ID_CHARACTERS = 37  # at the end of a span's name: a hyphen and a UUID
_PROMPT_TOKENS = ("prompt_tokens", "input_tokens", "prompt_token_count")
_COMPLETION_TOKENS = ("completion_tokens", "output_tokens", "candidates_token_count")


def install_handler(module: ModuleType) -> None:
    """Report what happens from now on. `module` has the function `get_dispatcher` of LlamaIndex."""
    root = module.get_dispatcher()
    if any(isinstance(handler, ReportingHandler) for handler in root.event_handlers):
        return  # the module of older versions, which is the same one under another name now
    handler = ReportingHandler()
    root.add_event_handler(handler)
    root.add_span_handler(handler)


class _OpenRun:
    """A run of a workflow, and the agent that works in it."""

    def __init__(self, workflow: Any) -> None:
        self.workflow = workflow
        self.agent: dict[str, object] | None = None

    def start_agent(self, event: Any) -> None:
        """Report the agent of an AgentSetup, unless this is its next turn."""
        if self.agent is None or self.agent["agent"] != event.current_agent_name:
            self.agent = {"agent": event.current_agent_name, "task": _task(event.input)}
            report("agent.started", self.agent)

    def end_agent(self, kind: str, more: dict[str, object]) -> None:
        """Report the end of the agent, if one works."""
        if self.agent is not None:
            report(kind, {**self.agent, **more})
        self.agent = None

    def name(self) -> object:
        """Return the agent's name."""
        return self.agent["agent"] if self.agent else None


class _Step:
    """A step of the crew's own workflow."""

    def __init__(self, name: str, event: object) -> None:
        self._subject: dict[str, object] = {"agent": name, "task": type(event).__name__}
        report("agent.started", self._subject)

    def exit(self, result: Any) -> None:
        """Report what the step returned."""
        report("agent.completed", {**self._subject, "output": _output(result)})

    def drop(self, error: BaseException) -> None:
        """Report the exception of the step."""
        report("agent.error", {**self._subject, "error": error_text(error)})


class _AgentStep:
    """A step of an agent of LlamaIndex: a turn of its model, or the handling of an answer."""

    def __init__(self, run: _OpenRun, event: Any) -> None:
        self._run = run
        if is_kind(event, "AgentSetup"):
            run.start_agent(event)

    def exit(self, result: Any) -> None:
        """Report the end of the agent, if this step brings it: the answer, or another agent."""
        if is_kind(result, "StopEvent"):
            self._run.end_agent("agent.completed", {"output": result_of(result.result)})
        elif is_kind(result, "AgentInput") and self._run.name() not in (None, result.current_agent_name):
            self._run.end_agent("agent.completed", {"output": {"handoff": result.current_agent_name}})

    def drop(self, error: BaseException) -> None:
        """Report the exception."""
        self._run.end_agent("agent.error", {"error": error_text(error)})


class _ToolCall:
    """A step of an agent of LlamaIndex that calls a tool."""

    def __init__(self, run: _OpenRun, event: Any) -> None:
        self._subject = {"agent": run.name(), "tool": event.tool_name}
        report("tool.called", {**self._subject, "input": event.tool_kwargs})

    def exit(self, result: Any) -> None:
        """Report the result; LlamaIndex gives the model the text of an exception."""
        output = getattr(result, "tool_output", None)
        if getattr(output, "is_error", False):
            error = getattr(output, "exception", None)
            text = error_text(error) if error is not None else str(getattr(output, "content", ""))
            report("tool.error", {**self._subject, "error": text})
            return
        value = getattr(output, "raw_output", None)
        if not isinstance(value, str | int | float | dict | list):
            value = getattr(output, "content", None)  # the text for the model
        report("tool.result", {**self._subject, "output": value})

    def drop(self, error: BaseException) -> None:
        """Report the exception."""
        report("tool.error", {**self._subject, "error": error_text(error)})


class ReportingHandler:
    """A handler of the events and of the spans of LlamaIndex's dispatcher, which ignores what it raises."""

    def __init__(self) -> None:
        self.open_spans: dict[str, object] = {}
        self._runs: dict[str, _OpenRun] = {}
        self._steps: dict[str, Any] = {}
        self._models: dict[object, str] = {}
        self._call_times = CallTimes()
        self._counted: dict[int, object] = {}  # raw responses by identity, which no other one takes meanwhile

    def handle(self, event: Any, **_: object) -> None:
        """Handle the start and the end of a call of a model; a completion may consist of a chat."""
        kind = type(event).__name__
        call = getattr(event, "span_id", None)
        if kind in ("LLMChatStartEvent", "LLMCompletionStartEvent"):
            self._call_times.begin(call)
            self._models[call] = _model(event.model_dict)
        elif kind in ("LLMChatEndEvent", "LLMCompletionEndEvent"):
            took = self._call_times.end(call)
            model = self._models.pop(call, "")
            response = event.response
            raw = getattr(response, "raw", None)
            if self._is_counted(raw):
                return
            if tokens := _tokens(response, raw):
                report("usage", {"model": model or str(_get(raw, "model") or ""), **tokens, **took})

    def _is_counted(self, raw: object) -> bool:
        """Return whether a raw response was seen before; from now on it was."""
        if raw is None:
            return False
        known = id(raw) in self._counted
        self._counted[id(raw)] = raw
        if len(self._counted) > _MAX_RESPONSES:
            self._counted.pop(next(iter(self._counted)), None)
        return known

    async def ahandle(self, event: Any, **named: object) -> None:
        """Do as `handle`."""
        self.handle(event, **named)

    def span_enter(
        self, id_: str, bound_args: Any, instance: object = None, parent_id: str | None = None, **_: object
    ) -> None:
        """Handle the start of a run or of one of its steps."""
        name = id_[:-_ID_CHARACTERS].rpartition(".")[2]
        if name == "run" and is_workflow(instance):
            self._runs[id_] = _OpenRun(instance)
            return
        run = self._runs.get(parent_id or "")
        if run is None:
            return
        event = next((value for value in bound_args.arguments.values() if is_kind(value, "Event")), None)
        step = getattr(type(run.workflow), name, None)
        if not str(getattr(step, "__module__", "")).startswith(PACKAGES):
            self._steps[id_] = _Step(name, event)
        elif is_kind(event, "ToolCall"):
            self._steps[id_] = _ToolCall(run, event)
        else:
            self._steps[id_] = _AgentStep(run, event)

    def span_exit(self, id_: str, bound_args: Any, result: object = None, **_: object) -> None:
        """Handle the end of a run or of a step."""
        if (step := self._steps.pop(id_, None)) is not None:
            step.exit(result)
        elif (run := self._runs.pop(id_, None)) is not None:
            run.end_agent("agent.completed", {"output": None})

    def span_drop(self, id_: str, bound_args: Any, err: BaseException | None = None, **_: object) -> None:
        """Handle the exception of a run, of a step, or of a call of a model."""
        error = err or RuntimeError("it was dropped")
        self._call_times.end(id_)
        self._models.pop(id_, None)
        if (step := self._steps.pop(id_, None)) is not None:
            step.drop(error)
        elif (run := self._runs.pop(id_, None)) is not None:
            run.end_agent("agent.error", {"error": error_text(error)})

    def capture_propagation_context(self) -> dict[str, object]:
        """Return nothing: spans of other processes are not ours."""
        return {}

    def restore_propagation_context(self, context: object) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Do nothing."""


def _output(result: Any) -> object:
    """Return what the event that a step returned says."""
    if is_kind(result, "StopEvent") and result.result is not None:
        return result_of(result.result)
    return fields_of(result) if is_kind(result, "Event") else None


def _task(messages: Any) -> object:
    """Return the text of the last message of the user."""
    for message in reversed(list(messages or ())):
        if getattr(message.role, "value", message.role) == "user":
            text: object = message.content
            return text
    return None


def _tokens(response: Any, raw: Any) -> dict[str, object]:
    """Return the tokens of a response; empty if the model does not report them."""
    more = getattr(response, "additional_kwargs", None) or {}
    usage = more if "prompt_tokens" in more else _get(raw, "usage") or _get(raw, "usage_metadata")
    prompt = next((value for name in _PROMPT_TOKENS if (value := _get(usage, name))), 0)
    completion = next((value for name in _COMPLETION_TOKENS if (value := _get(usage, name))), 0)
    completion += _get(_get(raw, "usage_metadata"), "thoughts_token_count") or 0  # Gemini counts them apart
    return {"prompt_tokens": prompt, "completion_tokens": completion} if prompt or completion else {}


def _model(described: object) -> str:
    return str(_get(described, "model") or _get(described, "model_name") or "")


def _get(value: Any, name: str) -> Any:
    return value.get(name) if isinstance(value, dict) else getattr(value, name, None)
