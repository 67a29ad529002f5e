"""Runs agents of Google's Agent Development Kit, and reports agent, tool and usage events.

Called by `import_watch`. Every agent passes through BaseAgent.run_async; a plugin of each runner sees tools
and models.
"""

from __future__ import annotations

import functools
import json
import sys

from ...events import error_text, report
from ..call_times import CallTimes
from .prompts import text_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from types import ModuleType
    from typing import Any

_PACKAGE = "google.adk."
_PLUGIN_NAME = "crewyard"
# Names of the application and of its user, which a session needs.
_APP_NAME = "crewyard"
_USER = "crewyard"


def wrap_agents(module: ModuleType) -> None:
    """Report what agents do from now on. `module` has the BaseAgent of the kit."""
    module.BaseAgent.run_async = _with_events(module.BaseAgent.run_async)


def install_plugin(module: ModuleType) -> None:
    """Add our plugin to each runner from now on. `module` has the PluginManager of the kit."""
    base: Any = sys.modules[f"{_PACKAGE}plugins.base_plugin"].BasePlugin
    plugin_type = type("CrewyardPlugin", (ReportingPlugin, base), {})
    original = module.PluginManager.__init__

    @functools.wraps(original)
    def init(self: Any, *arguments: Any, **named: Any) -> None:
        original(self, *arguments, **named)
        # An agent that is a tool runs in a runner of its own, with the plugins of the first one.
        if all(plugin.name != _PLUGIN_NAME for plugin in self.plugins):
            # The first one: a plugin that returns a value keeps the others from being called.
            self.plugins.insert(0, plugin_type(name=_PLUGIN_NAME))

    module.PluginManager.__init__ = init


def is_agent(target: object) -> bool:
    """Return whether the target is an agent or an app of the kit."""
    kinds = type(target).__mro__
    return any(
        kind.__name__ in ("BaseAgent", "App") and kind.__module__.startswith(_PACKAGE) for kind in kinds
    )


async def run_agent(agent: Any, prompt: object) -> object:
    """Return the final answer of the agent, as JSON where it declares an output schema."""
    from importlib import import_module

    types: Any = import_module("google.genai.types")
    make: Any = import_module(f"{_PACKAGE}runners").InMemoryRunner
    runner = make(agent=agent, app_name=_APP_NAME) if hasattr(agent, "run_async") else make(app=agent)
    session = await runner.session_service.create_session(app_name=runner.app_name, user_id=_USER)
    message = types.Content(role="user", parts=[types.Part(text=text_of(prompt))])
    last, waiting = None, None
    async for event in runner.run_async(user_id=_USER, session_id=session.id, new_message=message):
        says = _text(event) or event.error_code or getattr(event, "output", None) is not None
        if event.is_final_response() and says:  # one that only sets state says nothing
            last = event
        if event.long_running_tool_ids:
            waiting = event
        elif last is event and _text(event):
            waiting = None
    if waiting is not None:
        _refuse_waiting(waiting)
    return _answer(last, getattr(runner.agent, "output_schema", None) is not None)


def _refuse_waiting(event: Any) -> None:
    """Raise InputRequired: a tool waits for an answer or a confirmation."""
    from ...questions.question import InputRequired, impossible

    tools = ", ".join(sorted({str(call.name) for call in event.get_function_calls()}))
    raise InputRequired(
        impossible(tools, "an agent of the Agent Development Kit does not go on after its end")
    )


def _answer(last: Any, is_json: bool) -> object:
    """Return the text of the last final event, else its output. Raises RuntimeError for a model's error."""
    text = _text(last)
    code = getattr(last, "error_code", None)
    if code and not text:
        raise RuntimeError(
            f"The model ended with {code}: {getattr(last, 'error_message', None) or 'no text'}"
        )
    if is_json and text:
        try:
            value: object = json.loads(text)
        except ValueError:
            return text
        return value
    return text or getattr(last, "output", None)


def _with_events(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    async def run_async(self: Any, parent_context: Any) -> AsyncIterator[Any]:
        subject = {"agent": self.name, "task": _text_of(getattr(parent_context, "user_content", None))}
        report("agent.started", subject)
        output: object = None
        handed = False
        events = original(self, parent_context)
        try:
            async for event in events:
                if not handed and (said := _output(event, self.name)) is not None:
                    output, handed = said, isinstance(said, dict)
                yield event
        except GeneratorExit:
            report("agent.completed", {**subject, "output": output})
            raise
        except BaseException as error:
            report("agent.error", {**subject, "error": error_text(error)})
            raise
        finally:
            await events.aclose()
        report("agent.completed", {**subject, "output": output})

    return run_async


def _output(event: Any, agent: str) -> object:
    """Return what the event adds to the agent's answer: a text, or the agent that gets the rest."""
    target = getattr(getattr(event, "actions", None), "transfer_to_agent", None)
    if target and event.author == agent:
        return {"handoff": target}
    return _text(event) if event.is_final_response() else None


class ReportingPlugin:
    """The plugin of a runner; it changes nothing that it sees."""

    def __init__(self, name: str) -> None:
        super().__init__(name=name)  # type: ignore[call-arg]
        self._calls: dict[int, dict[str, object]] = {}
        self._call_times = CallTimes()

    async def before_tool_callback(self, *, tool: Any, tool_args: Any, tool_context: Any) -> None:
        """Handle the call of a tool."""
        called = {"agent": tool_context.agent_name, "tool": tool.name}
        self._calls[id(tool_context)] = called
        report("tool.called", {**called, "input": tool_args})

    async def after_tool_callback(self, *, tool: Any, tool_args: Any, tool_context: Any, result: Any) -> None:
        """Handle the result of a tool."""
        if (called := self._calls.pop(id(tool_context), None)) is not None:
            report("tool.result", {**called, "output": result})

    async def on_tool_error_callback(
        self, *, tool: Any, tool_args: Any, tool_context: Any, error: BaseException
    ) -> None:
        """Handle the exception of a tool; of one that does not exist too."""
        called = self._calls.pop(id(tool_context), None)
        if called is None:
            called = {"agent": tool_context.agent_name, "tool": tool.name}
            report("tool.called", {**called, "input": tool_args})
        report("tool.error", {**called, "error": error_text(error)})

    async def before_model_callback(self, *, callback_context: Any, llm_request: Any) -> None:
        """Handle the start of a model's call."""
        self._call_times.begin(_call_key(callback_context))

    async def on_model_error_callback(
        self, *, callback_context: Any, llm_request: Any, error: BaseException
    ) -> None:
        """Forget the call; the failing agent reports the error."""
        self._call_times.end(_call_key(callback_context))

    async def after_model_callback(self, *, callback_context: Any, llm_response: Any) -> None:
        """Report token usage, if the model reports it; parts of a streamed answer have none of their own."""
        if getattr(llm_response, "partial", None):
            return
        took = self._call_times.end(_call_key(callback_context))
        usage = getattr(llm_response, "usage_metadata", None)
        if usage is None:
            return
        prompt = (usage.prompt_token_count or 0) + (getattr(usage, "tool_use_prompt_token_count", None) or 0)
        # The model's thoughts are in the total alone.
        completion = max(usage.candidates_token_count or 0, (usage.total_token_count or 0) - prompt)
        if prompt or completion:
            tokens = {"prompt_tokens": prompt, "completion_tokens": completion}
            report("usage", {"model": _model(callback_context, llm_response), **tokens, **took})


def _call_key(context: Any) -> tuple[object, object]:
    """Return what an agent's calls of its model have in common: it makes one at a time."""
    return getattr(context, "invocation_id", None), getattr(context, "agent_name", None)


def _model(context: Any, response: Any) -> str:
    named = getattr(response, "model_version", None)
    if named:
        return str(named)
    invocation = getattr(context, "_invocation_context", None)
    model = getattr(getattr(invocation, "agent", None), "model", "")
    return str(model if isinstance(model, str) else getattr(model, "model", ""))


def _text(event: Any) -> str | None:
    return _text_of(getattr(event, "content", None))


def _text_of(content: Any) -> str | None:
    """Return the text of a content, without the model's thoughts."""
    parts = getattr(content, "parts", None) or ()
    texts = [
        part.text for part in parts if getattr(part, "text", None) and not getattr(part, "thought", None)
    ]
    return "".join(texts) or None
