"""Runs agents of Pydantic AI, and reports agent, tool and usage events. Called by `import_watch`.

Pydantic AI describes what it does as spans of OpenTelemetry. Ours go nowhere: their start and end are
events. A crew that sets its own instrumentation gets that instead.
"""

from __future__ import annotations

import json
from contextlib import contextmanager
from importlib import import_module

from ...events import error_text, report
from ..call_times import CallTimes
from .prompts import text_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from types import ModuleType
    from typing import Any

_call_times = CallTimes()


def install_tracer(module: ModuleType) -> None:
    """Report what agents do from now on. `module` is `pydantic_ai`."""
    trace = _trace()
    settings: Any = import_module("pydantic_ai.models.instrumented").InstrumentationSettings
    span_type = type("CrewyardSpan", (ReportingSpan, trace.Span), {})
    tracer_type = type("CrewyardTracer", (ReportingTracer, trace.Tracer), {"span_type": span_type})
    members = {"tracer": tracer_type()}
    provider_type = type("CrewyardTracerProvider", (_Provider, trace.TracerProvider), members)
    module.Agent.instrument_all(settings(tracer_provider=provider_type()))


def is_agent(target: object) -> bool:
    """Return whether the target is an agent of Pydantic AI, also of a derived class."""
    is_derived = any(kind.__module__.startswith("pydantic_ai.") for kind in type(target).__mro__)
    return is_derived and callable(getattr(target, "run_sync", None))


def run_agent(agent: Any, prompt: object) -> object:
    """Return the output of the agent."""
    is_content = isinstance(prompt, list) and all(isinstance(part, str) for part in prompt)
    return result_of(agent.run_sync(prompt if is_content else text_of(prompt)))


def result_of(result: Any) -> object:
    """Return the output in a result of a run; before version 0.1 it was called `data`.

    Raises InputRequired if the result or its output are tools that wait for an approval or a call elsewhere.
    """
    output: Any = result
    if not _is_deferred(result):
        output = result.output if hasattr(result, "output") else result.data
    if _is_deferred(output):
        from ...questions.question import InputRequired, impossible

        waiting = [*getattr(output, "approvals", ()), *getattr(output, "calls", ())]
        tools = ", ".join(sorted({str(getattr(item, "tool_name", "a tool")) for item in waiting}))
        why = "an agent of Pydantic AI does not go on after its end"
        raise InputRequired(impossible(tools, why))
    same: object = output
    return same


def _is_deferred(value: object) -> bool:
    kind = type(value)
    return kind.__name__ == "DeferredToolRequests" and kind.__module__.startswith("pydantic_ai.")


def _trace() -> Any:
    return import_module("opentelemetry.trace")


class _Provider:
    tracer: object

    def get_tracer(self, *_: object, **__: object) -> object:
        """Return the tracer of all instrumentation."""
        return self.tracer


class ReportingTracer:
    """The tracer: it makes spans, and the last one that was entered is the current one."""

    span_type: Any

    def start_span(self, name: str, context: Any = None, *rest: Any, **more: Any) -> Any:
        """Return a span that has started."""
        current = _trace().get_current_span(context)
        agent = current.agent if isinstance(current, ReportingSpan) else None
        attributes: Mapping[str, object] = (
            more.get("attributes") or (rest[1] if len(rest) > 1 else None) or {}
        )
        return self.span_type(name, attributes, agent)

    @contextmanager
    def start_as_current_span(self, name: str, context: Any = None, *rest: Any, **more: Any) -> Iterator[Any]:
        """Start a span, and end it at the end of the block."""
        span = self.start_span(name, context, *rest, **more)
        # False for an exception that does not count as an error, as of a tool that waits for an approval.
        recorded = more.get("record_exception", True)
        with _trace().use_span(span, end_on_exit=True, record_exception=recorded):
            yield span


class ReportingSpan:
    """One call of an agent, a tool or a model; `agent` is the name of the agent in which it happens."""

    def __init__(self, name: str, attributes: Mapping[str, object], agent: str | None) -> None:
        self._attributes = dict(attributes)
        self._error = ""
        self._subject: dict[str, object] = {}
        self._kind = _kind(name, self._attributes)
        self.agent = agent
        if self._kind == "agent":
            self.agent = str(self._first("gen_ai.agent.name", "agent_name") or "agent")
            self._subject = {"agent": self.agent, "task": None}
            report("agent.started", self._subject)
        elif self._kind == "tool":
            self._subject = {"agent": agent, "tool": self._first("gen_ai.tool.name")}
            given = self._first("gen_ai.tool.call.arguments", "tool_arguments")
            report("tool.called", {**self._subject, "input": _from_json(given)})
        elif self._kind == "model":
            _call_times.begin(self)

    def end(self, end_time: int | None = None) -> None:
        """Report the end, once."""
        kind, self._kind = self._kind, ""
        if kind == "model":
            self._report_usage(_call_times.end(self))
        elif kind and self._error:
            report(f"{kind}.error", {**self._subject, "error": self._error})
        elif kind:
            output = self._first("final_result", "gen_ai.tool.call.result", "tool_response")
            name = "agent.completed" if kind == "agent" else "tool.result"
            report(name, {**self._subject, "output": _from_json(output)})

    def record_exception(self, exception: BaseException, *_: object, **__: object) -> None:
        """Keep the error for the end."""
        self._error = error_text(exception)

    def set_attribute(self, key: str, value: object) -> None:
        """Set an attribute, such as the result."""
        self._attributes[key] = value

    def set_attributes(self, attributes: Mapping[str, object]) -> None:
        """Set attributes, such as the tokens."""
        self._attributes.update(attributes)

    def get_span_context(self) -> object:
        """Return no context: nothing outside refers to this span."""
        nothing: object = _trace().INVALID_SPAN_CONTEXT
        return nothing

    def is_recording(self) -> bool:
        """Return whether attributes are of use."""
        return True

    def add_event(self, *_: object, **__: object) -> None:
        """Ignore details within a call."""

    def update_name(self, name: str) -> None:
        """Ignore another name for display."""

    def set_status(self, *_: object, **__: object) -> None:
        """Ignore the status: an error is recorded, too."""

    def _first(self, *names: str) -> object:
        return next((self._attributes[name] for name in names if name in self._attributes), None)

    def _report_usage(self, took: dict[str, object]) -> None:
        prompt, completion = (self._first(f"gen_ai.usage.{name}_tokens") for name in ("input", "output"))
        if isinstance(prompt, int) or isinstance(completion, int):
            tokens = {"prompt_tokens": prompt or 0, "completion_tokens": completion or 0}
            model = self._first("gen_ai.response.model", "gen_ai.request.model")
            report("usage", {"model": str(model or ""), **tokens, **took})


def _kind(name: str, attributes: Mapping[str, object]) -> str:
    operation = attributes.get("gen_ai.operation.name")
    if "gen_ai.tool.name" in attributes:
        return "tool"
    if operation == "invoke_agent" or name == "agent run":
        return "agent"
    return "model" if operation == "chat" or "gen_ai.request.model" in attributes else ""


def _from_json(value: object) -> object:
    try:
        found: object = (
            json.loads(value) if isinstance(value, str) and value[:1] in ("{", "[", '"') else value
        )
    except ValueError:
        return value
    return found
