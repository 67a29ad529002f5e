"""Runs agents and teams of AutoGen, and reports agent, tool and usage events. Called by `import_watch`.

Each class of agents has its own `on_messages_stream` or `on_messages`; those are wrapped when the class is
made. AutoGen logs each call of a model with its tokens.
"""

from __future__ import annotations

import functools
from contextvars import ContextVar

from ...events import error_text, report
from .prompts import text_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    import logging
    from collections.abc import AsyncIterator, Callable
    from types import ModuleType
    from typing import Any

_PACKAGE = "autogen_agentchat."
_EVENTS_LOGGER = "autogen_core.events"
_RUN_BASES = ("BaseChatAgent", "BaseGroupChat")
_current: ContextVar[Any] = ContextVar("crewyard_agent", default=None)


def wrap_agents(module: ModuleType) -> None:
    """Report what agents do from now on. `module` has AutoGen's BaseChatAgent."""
    base = module.BaseChatAgent

    def init_subclass(cls: Any, /, **named: Any) -> None:
        super(base, cls).__init_subclass__(**named)
        _wrap_methods(cls)

    base.__init_subclass__ = classmethod(init_subclass)
    _wrap_methods(base)


def wrap_tools(module: ModuleType) -> None:
    """Report what tools do, and the tokens of models. `module` has AutoGen's BaseTool."""
    import logging

    module.BaseTool.run_json = _with_tool_events(module.BaseTool.run_json)
    logger = logging.getLogger(_EVENTS_LOGGER)
    logger.setLevel(logging.INFO)
    logger.addFilter(_report_usage)


def is_agent(target: object) -> bool:
    """Return whether the target is an agent or a team of AutoGen."""
    kinds = type(target).__mro__
    return any(kind.__name__ in _RUN_BASES and kind.__module__.startswith(_PACKAGE) for kind in kinds)


async def run_agent(agent: Any, prompt: object) -> object:
    """Return the content of the last message of an agent or a team."""
    return result_of(await agent.run(task=text_of(prompt)))


def result_of(value: Any) -> object:
    """Return the content of the last message in the result of a run."""
    return _content(value.messages[-1]) if value.messages else None


def _wrap_methods(cls: Any) -> None:
    for name, wrap in (("on_messages_stream", _with_stream_events), ("on_messages", _with_events)):
        original = cls.__dict__.get(name)
        if original is not None and not getattr(original, "__isabstractmethod__", False):
            setattr(cls, name, wrap(original))


def _with_events(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    async def call(self: Any, messages: Any, *arguments: Any, **named: Any) -> Any:
        if _current.get() is self:
            return await original(self, messages, *arguments, **named)
        work = _AgentWork(self, messages)
        try:
            response = await original(self, messages, *arguments, **named)
        except BaseException as error:
            work.fail(error)
            raise
        work.complete(response)
        return response

    return call


def _with_stream_events(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    async def stream(self: Any, messages: Any, *arguments: Any, **named: Any) -> AsyncIterator[Any]:
        if _current.get() is self:
            async for item in original(self, messages, *arguments, **named):
                yield item
            return
        work = _AgentWork(self, messages)
        response: Any = None
        try:
            async for item in original(self, messages, *arguments, **named):
                if hasattr(item, "chat_message"):
                    response = item
                    work.complete(response)
                yield item
        except GeneratorExit:
            work.leave()
            raise
        except BaseException as error:
            work.fail(error)
            raise
        work.leave()

    return stream


class _AgentWork:
    """The work of an agent on the last message; an agent that calls its own methods has one."""

    def __init__(self, agent: Any, messages: Any) -> None:
        self._subject = {"agent": agent.name, "task": _content(messages[-1]) if messages else None}
        self._before = _current.get()
        self._ended = False
        _current.set(agent)
        report("agent.started", self._subject)

    def complete(self, response: Any) -> None:
        """Report the answer: another agent's name where it hands over."""
        message = response.chat_message
        target = getattr(message, "target", None)
        self._end("agent.completed", {"output": {"handoff": target} if target else _content(message)})

    def fail(self, error: BaseException) -> None:
        """Report the exception."""
        self._end("agent.error", {"error": error_text(error)})

    def leave(self) -> None:
        """End without a report, such as when the crew does not read the rest of a stream."""
        self._ended = True
        _current.set(self._before)

    def _end(self, kind: str, more: dict[str, object]) -> None:
        if not self._ended:
            report(kind, {**self._subject, **more})
        self.leave()


def _with_tool_events(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    async def run_json(self: Any, args: Any, *arguments: Any, **named: Any) -> Any:
        subject = {"agent": getattr(_current.get(), "name", None), "tool": self.name}
        report("tool.called", {**subject, "input": args})
        try:
            output = await original(self, args, *arguments, **named)
        except BaseException as error:
            report("tool.error", {**subject, "error": error_text(error)})
            raise
        report("tool.result", {**subject, "output": output})
        return output

    return run_json


def _report_usage(record: logging.LogRecord) -> bool:
    """Report the tokens of a logged call; return whether the record would exist without this filter."""
    import logging

    event = record.msg
    kwargs = getattr(event, "kwargs", None)
    if type(event).__name__ in ("LLMCallEvent", "LLMStreamEndEvent") and isinstance(kwargs, dict):
        response = kwargs.get("response")
        model = response.get("model") if isinstance(response, dict) else None
        tokens = {name: kwargs.get(name) or 0 for name in ("prompt_tokens", "completion_tokens")}
        if any(tokens.values()):
            report("usage", {"model": str(model or ""), **tokens})
    logger = logging.getLogger(_EVENTS_LOGGER)
    parent = logger.parent or logging.getLogger()
    return bool(logger.handlers) or record.levelno >= parent.getEffectiveLevel()


def _content(message: Any) -> object:
    content: object = getattr(message, "content", None)
    if isinstance(content, str) or hasattr(content, "model_dump"):
        return content
    text = getattr(message, "to_text", None)
    return text() if callable(text) else content
