"""Runs agents of the OpenAI Agents SDK, and reports agent, tool and usage events. Called by `import_watch`.

The SDK takes hooks as an argument of each run: ours report and then call those of the crew.
"""

from __future__ import annotations

import functools
import json
import sys

from ...events import error_text, report
from ..call_times import CallTimes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from types import ModuleType
    from typing import Any

# The SDK would send what agents do to its maker.
DEFAULTS = {"OPENAI_AGENTS_DISABLE_TRACING": "1"}
_RUN_METHODS = ("run", "run_sync", "run_streamed")


def install_hooks(module: ModuleType) -> None:
    """Add our hooks to each run from now on. `module` is `agents.run`, of the SDK or of the crew."""
    base, runner = _hooks_base(), getattr(module, "Runner", None)
    if base is None or runner is None:
        return  # a package of the crew that has the SDK's name
    hooks_type = type("CrewyardHooks", (ReportingHooks, base), {})
    for name in _RUN_METHODS:
        original = getattr(getattr(runner, name, None), "__func__", None)
        if original is not None:
            setattr(runner, name, classmethod(_with_hooks(original, hooks_type)))


def _hooks_base() -> Any:
    lifecycle = sys.modules.get("agents.lifecycle")
    return getattr(lifecycle, "RunHooksBase", None) or getattr(lifecycle, "RunHooks", None)


def _is_sdk() -> bool:
    """Return whether the package `agents` is the SDK, not one of the crew."""
    return hasattr(sys.modules.get("agents"), "Runner") and _hooks_base() is not None


def is_agent(target: object) -> bool:
    """Return whether the target is an agent of the SDK."""
    return _is_sdk() and any(kind.__module__ == "agents.agent" for kind in type(target).__mro__)


def run_agent(agent: object, prompt: object) -> object:
    """Return the final output of the agent."""
    sdk: Any = sys.modules["agents"]
    return result_of(sdk.Runner.run_sync(agent, prompt))


def result_of(result: Any) -> object:
    """Return the final output in a result. Raises InputRequired if a tool waits for an approval."""
    if not _is_sdk():
        return result
    if waiting := getattr(result, "interruptions", None):
        from ...questions.question import InputRequired, impossible

        tools = ", ".join(sorted({str(getattr(item, "tool_name", "a tool")) for item in waiting}))
        why = "an agent of the OpenAI Agents SDK does not go on after its end"
        raise InputRequired(impossible(tools, why))
    output: object = result.final_output
    return output


def _with_hooks(original: Callable[..., Any], hooks_type: Any) -> Callable[..., Any]:
    from inspect import iscoroutinefunction

    def added(arguments: tuple[Any, ...], named: dict[str, Any]) -> ReportingHooks:
        own = named.get("hooks")
        if isinstance(own, ReportingHooks):
            return own  # one method of the SDK called another
        hooks: ReportingHooks = hooks_type()
        hooks.prepare(named.get("input", arguments[1] if len(arguments) > 1 else None), own)
        named["hooks"] = hooks
        return hooks

    @functools.wraps(original)
    def call(cls: Any, *arguments: Any, **named: Any) -> Any:
        hooks = added(arguments, named)
        try:
            result = original(cls, *arguments, **named)
        except BaseException as error:
            hooks.fail(error)
            raise
        if hasattr(result, "stream_events"):  # which raises the errors of a run that goes on now
            result.stream_events = _with_failure(result.stream_events, hooks)
        return result

    @functools.wraps(original)
    async def call_async(cls: Any, *arguments: Any, **named: Any) -> Any:
        hooks = added(arguments, named)
        try:
            return await original(cls, *arguments, **named)
        except BaseException as error:
            hooks.fail(error)
            raise

    return call_async if iscoroutinefunction(original) else call


def _with_failure(
    stream_events: Callable[[], Any], hooks: ReportingHooks
) -> Callable[[], AsyncIterator[Any]]:
    @functools.wraps(stream_events)
    async def events_of_run() -> AsyncIterator[Any]:
        events = stream_events()
        try:
            async for event in events:
                yield event
        except GeneratorExit:  # the crew reads no more, and the run goes on
            raise
        except BaseException as error:
            hooks.fail(error)
            raise
        finally:
            await events.aclose()

    return events_of_run


class ReportingHooks:
    """The hooks of one run of the SDK; `_own` are those of the crew."""

    _own: Any = None
    _task: str | None = None

    def prepare(self, given: object, own: object) -> None:
        """Set the run's input, and the hooks that the crew gave."""
        self._own = own
        self._task = _last_text(given)
        self._agents: dict[str, dict[str, object]] = {}
        self._tools: dict[tuple[str, str], dict[str, object]] = {}
        self._call_times = CallTimes()

    def fail(self, error: BaseException) -> None:
        """Report the error of what has not ended."""
        text = error_text(error)
        for tool in [self._tools.pop(key) for key in list(self._tools)]:
            report("tool.error", {**tool, "error": text})
        for agent in [self._agents.pop(name) for name in list(self._agents)]:
            report("agent.error", {**agent, "error": text})

    async def on_agent_start(self, context: Any, agent: Any) -> None:
        """Handle the start of an agent."""
        started = self._agents[agent.name] = {"agent": agent.name, "task": self._task}
        report("agent.started", started)
        await self._call_own("on_agent_start", context, agent)

    async def on_agent_end(self, context: Any, agent: Any, output: Any) -> None:
        """Handle the final output of an agent."""
        self._complete(agent, output)
        await self._call_own("on_agent_end", context, agent, output)

    async def on_handoff(self, context: Any, from_agent: Any, to_agent: Any) -> None:
        """Handle that an agent leaves the rest to another one."""
        self._complete(from_agent, {"handoff": to_agent.name})
        await self._call_own("on_handoff", context, from_agent, to_agent)

    async def on_tool_start(self, context: Any, agent: Any, tool: Any) -> None:
        """Handle the call of a tool."""
        called = self._tools[_tool_key(context, tool)] = {"agent": agent.name, "tool": tool.name}
        report("tool.called", {**called, "input": _arguments(context)})
        await self._call_own("on_tool_start", context, agent, tool)

    async def on_tool_end(self, context: Any, agent: Any, tool: Any, result: Any) -> None:
        """Handle the result of a tool; the SDK makes one of an exception, too."""
        if (called := self._tools.pop(_tool_key(context, tool), None)) is not None:
            report("tool.result", {**called, "output": result})
        await self._call_own("on_tool_end", context, agent, tool, result)

    async def on_llm_start(self, context: Any, agent: Any, system_prompt: Any, input_items: Any) -> None:
        """Handle the start of a model's call, after the crew's hook."""
        await self._call_own("on_llm_start", context, agent, system_prompt, input_items)
        self._call_times.begin(agent.name)

    async def on_llm_end(self, context: Any, agent: Any, response: Any) -> None:
        """Report token usage, if the model reports it."""
        took = self._call_times.end(agent.name)
        usage: Any = getattr(response, "usage", None)
        if getattr(usage, "total_tokens", 0):
            tokens = {"prompt_tokens": usage.input_tokens, "completion_tokens": usage.output_tokens}
            report("usage", {"model": _model(agent), **tokens, **took})
        await self._call_own("on_llm_end", context, agent, response)

    def _complete(self, agent: Any, output: object) -> None:
        if (started := self._agents.pop(agent.name, None)) is not None:
            report("agent.completed", {**started, "output": output})

    async def _call_own(self, name: str, *arguments: Any) -> None:
        if self._own is not None:
            await getattr(self._own, name)(*arguments)


def _tool_key(context: Any, tool: Any) -> tuple[str, str]:
    return str(getattr(context, "tool_call_id", "")), str(tool.name)


def _arguments(context: Any) -> object:
    text = getattr(context, "tool_arguments", None)
    try:
        value: object = json.loads(text) if isinstance(text, str) else text
    except ValueError:
        return text
    return value


def _model(agent: Any) -> str:
    model = getattr(agent, "model", None)
    if model is None:
        defaults: Any = sys.modules.get("agents.models.default_models")
        return str(defaults.get_default_model()) if hasattr(defaults, "get_default_model") else ""
    return str(model if isinstance(model, str) else getattr(model, "model", ""))


def _last_text(given: Any) -> str | None:
    if isinstance(given, list) and given and isinstance(given[-1], dict):
        given = given[-1].get("content")
    return given if isinstance(given, str) else None
