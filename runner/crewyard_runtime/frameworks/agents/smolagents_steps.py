"""Runs agents of smolagents, and reports agent, tool and usage events. Called by `import_watch`.

smolagents has callbacks for the ends of steps only; so the generator of an agent's steps and the call of a
tool are wrapped.
"""

from __future__ import annotations

import functools
from contextvars import ContextVar

from ...events import error_text, report
from .prompts import text_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import ModuleType
    from typing import Any

# Its library for models reports its use to its maker.
DEFAULTS = {"HF_HUB_DISABLE_TELEMETRY": "1"}
_MODULE = "smolagents.agents"
_current: ContextVar[str | None] = ContextVar("crewyard_agent", default=None)
# The code of an agent is executed in a thread without its context.
_running: list[str] = []


def wrap_agents(module: ModuleType) -> None:
    """Report what agents do from now on. `module` is `smolagents.agents`."""
    agent, tool = module.MultiStepAgent, module.Tool
    agent._run_stream = _with_agent_events(agent._run_stream)
    agent._finalize_step = _with_usage(agent._finalize_step)
    tool.__call__ = _with_tool_events(tool.__call__)


def is_agent(target: object) -> bool:
    """Return whether the target is an agent of smolagents."""
    kinds = type(target).__mro__
    return any(kind.__name__ == "MultiStepAgent" and kind.__module__ == _MODULE for kind in kinds)


def run_agent(agent: Any, prompt: object) -> object:
    """Return the final answer of the agent."""
    return result_of(agent.run(text_of(prompt)))


def result_of(value: Any) -> object:
    """Return the final answer in the result of a run; an answer itself unchanged."""
    output: object = value.output if type(value).__name__ == "RunResult" else value
    return output


def _with_agent_events(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def steps(self: Any, task: Any, *arguments: Any, **named: Any) -> Iterator[Any]:
        name = str(getattr(self, "name", None) or type(self).__name__)
        subject: dict[str, object] = {"agent": name, "task": task}
        report("agent.started", subject)
        before = _current.get()
        _current.set(name)
        _running.append(name)
        output: object = None
        try:
            for step in original(self, task, *arguments, **named):
                if type(step).__name__ == "FinalAnswerStep":
                    output = step.output
                yield step
        except GeneratorExit:  # the crew reads no more, such as after the final answer
            report("agent.completed", {**subject, "output": output})
            raise
        except BaseException as error:
            report("agent.error", {**subject, "error": error_text(error)})
            raise
        finally:
            _current.set(before)
            _running.remove(name)
        report("agent.completed", {**subject, "output": output})

    return steps


def _with_usage(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def finalize(self: Any, memory_step: Any) -> Any:
        usage = getattr(memory_step, "token_usage", None)
        if usage is not None:
            tokens = {"prompt_tokens": usage.input_tokens, "completion_tokens": usage.output_tokens}
            report("usage", {"model": str(getattr(self.model, "model_id", "") or ""), **tokens})
        return original(self, memory_step)

    return finalize


def _with_tool_events(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def call(self: Any, *arguments: Any, **named: Any) -> Any:
        name = str(getattr(self, "name", type(self).__name__))
        if name == "final_answer":  # how an agent ends
            return original(self, *arguments, **named)
        agent = _current.get() or (_running[-1] if _running else None)
        subject: dict[str, object] = {"agent": agent, "tool": name}
        report("tool.called", {**subject, "input": _input(self, arguments, named)})
        try:
            output = original(self, *arguments, **named)
        except BaseException as error:
            report("tool.error", {**subject, "error": error_text(error)})
            raise
        report("tool.result", {**subject, "output": output})
        return output

    return call


def _input(tool: Any, arguments: tuple[Any, ...], named: dict[str, Any]) -> object:
    """Return the arguments of a tool by name."""
    given = {key: value for key, value in named.items() if key != "sanitize_inputs_outputs"}
    if len(arguments) == 1 and not given and isinstance(arguments[0], dict):
        return arguments[0]
    names = list(getattr(tool, "inputs", None) or ())
    return {**dict(zip(names, arguments, strict=False)), **given}
