"""Agents that take a prompt: of the OpenAI Agents SDK, Pydantic AI, smolagents, AutoGen and Google's ADK.

Also workflows of LlamaIndex. Called by `call` and `crew`.
"""

from __future__ import annotations

import json
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_PROMPT_KEYS = ("prompt", "input")
# Loaded by `import_watch` when the crew imports the framework.
_MODULES = ("openai_agents", "pydantic_ai_spans", "smolagents_steps", "autogen_agents", "adk_agents")
# The package and class of a result, and the module that reads it.
_RESULTS = (
    ("agents.result", "RunResult", "openai_agents"),
    ("agents.result", "RunResultStreaming", "openai_agents"),
    ("pydantic_ai.", "AgentRunResult", "pydantic_ai_spans"),
    ("pydantic_ai.", "DeferredToolRequests", "pydantic_ai_spans"),
    ("smolagents.", "RunResult", "smolagents_steps"),
    ("autogen_agentchat.", "TaskResult", "autogen_agents"),
    ("llama_index.", "AgentOutput", "llama_index_workflows"),
)

_MAX_DEPTH = 4  # levels of lists and dicts to search for results


def runner_of(target: Any) -> Callable[[dict[str, object]], object] | None:
    """Return a function that runs the agent with the run's input; None for another target."""
    workflows: Any = sys.modules.get(f"{__package__}.llama_index_workflows")
    if workflows is not None and workflows.is_workflow(target):
        return lambda inputs: workflows.run_workflow(target, inputs, prompt_of(inputs))
    for name in _MODULES:
        module: Any = sys.modules.get(f"{__package__}.{name}")
        if module is not None and module.is_agent(target):
            return lambda inputs: module.run_agent(target, prompt_of(inputs))
    return None


def prompt_of(inputs: dict[str, object]) -> object:
    """Return the prompt in an input: `prompt` or `input`, else its only text, else all of it as JSON."""
    for key in _PROMPT_KEYS:
        if isinstance(inputs.get(key), str | list):
            return inputs[key]
    if len(inputs) == 1 and isinstance(text := next(iter(inputs.values())), str):
        return text
    return json.dumps(inputs, ensure_ascii=False)


def text_of(prompt: object) -> str:
    """Return a prompt as the text that an agent takes: a list as JSON."""
    return prompt if isinstance(prompt, str) else json.dumps(prompt, ensure_ascii=False)


def outcome(value: Any, depth: int = 0) -> object:
    """Return the output in the result of an agent's run, also in lists and dicts; other values unchanged."""
    kind = type(value)
    if depth < _MAX_DEPTH and kind is list:
        return [outcome(item, depth + 1) for item in value]
    if depth < _MAX_DEPTH and kind is dict:
        return {key: outcome(item, depth + 1) for key, item in value.items()}
    for package, name, reader in _RESULTS:
        if kind.__name__ == name and kind.__module__.startswith(package):
            module: Any = sys.modules.get(f"{__package__}.{reader}")
            if module is not None:
                value = module.result_of(value)
    same: object = value
    return same
