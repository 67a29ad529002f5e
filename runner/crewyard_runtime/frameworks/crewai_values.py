"""CrewAI's events and results -> what is told of them. Pure. Called by `of_crewai`, `call` and `crew`.

By what they have, not by their classes: those move from version to version.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Told = tuple[str, dict[str, object]]

_RESULTS = ("CrewOutput", "TaskOutput", "LiteAgentOutput")
_DEEPEST = 4  # levels of lists and dicts in which results are looked for


def outcome(value: Any, depth: int = 0) -> object:
    """The run's output for what a crew or flow returned: of a result the object that the crew was asked to
    produce (output_pydantic, output_json), else its text. Anything else is what it is.

    The rest of a result, every message of every task, is no output: the events have told it.
    """
    kind = type(value)
    if kind.__name__ in _RESULTS and kind.__module__.startswith("crewai."):
        produced: object = value.pydantic if value.pydantic is not None else getattr(value, "json_dict", None)
        return value.raw if produced is None else produced
    if depth < _DEEPEST and kind is list:
        return [outcome(one, depth + 1) for one in value]
    if depth < _DEEPEST and kind is dict:
        return {key: outcome(one, depth + 1) for key, one in value.items()}
    if kind.__module__ == "crewai.types.streaming" and hasattr(kind, "__iter__"):
        for _ in value:  # a crew with stream=True runs while it is read
            pass
        return outcome(value.result, depth + 1)
    same: object = value
    return same


def unfilled(crew: Any, inputs: dict[str, object]) -> list[str]:
    """The placeholders of a crew's tasks and agents that no input fills.

    With some input CrewAI itself says what is missing; with none it would hand "{topic}" to the model.
    """
    gather = getattr(crew, "fetch_inputs", None)
    if inputs or getattr(crew, "before_kickoff_callbacks", None) or not callable(gather):
        return []
    return sorted(str(name) for name in gather() if str(name).isidentifier())


def translate(event: Any) -> Told | None:
    """The run's event for one of CrewAI's, None where there is none. Pure. By its `type`, which has been the
    same over the versions, while the classes moved."""
    kind = _kind(event)
    if kind in _AGENT:
        return _of_agent(_AGENT[kind], event)
    if kind in _TOOL:
        return _of_tool(_TOOL[kind], event)
    if kind == "llm_call_completed":
        return _usage(event)
    return None


_AGENT = {
    "agent_execution_started": "agent.started",
    "agent_execution_completed": "agent.completed",
    "agent_execution_error": "agent.error",
    "lite_agent_execution_started": "agent.started",
    "lite_agent_execution_completed": "agent.completed",
    "lite_agent_execution_error": "agent.error",
}
_TOOL = {
    "tool_usage_started": "tool.called",
    "tool_usage_finished": "tool.result",
    "tool_usage_error": "tool.error",
    "tool_validate_input_error": "tool.error",
    "tool_selection_error": "tool.error",
}
_PROMPT = ("prompt_tokens", "input_tokens", "prompt_token_count", "inputTokens")
_COMPLETION = ("completion_tokens", "output_tokens", "candidates_token_count", "outputTokens")


def _kind(event: Any) -> str:
    return str(getattr(event, "type", ""))


def _of_agent(type: str, event: Any) -> Told:
    data: dict[str, object] = {"agent": _agent(event), "task": _task(event)}
    if type == "agent.completed":
        data["output"] = getattr(event, "output", None)
    elif type == "agent.error":
        data["error"] = _text(getattr(event, "error", None)) or "It failed without a message."
    return type, data


def _of_tool(type: str, event: Any) -> Told:
    data: dict[str, object] = {"agent": _agent(event), "tool": _text(getattr(event, "tool_name", None))}
    failure = getattr(event, "failure", None)
    if type == "tool.called":
        data["input"] = _arguments(getattr(event, "tool_args", None))
    elif type == "tool.error" or failure is not None:
        # A tool may also return that it failed.
        type = "tool.error"
        error = getattr(failure, "message", None) if failure is not None else getattr(event, "error", None)
        data["error"] = _text(error) or "It failed without a message."
    else:
        data["output"] = getattr(event, "output", None)
    return type, data


def _usage(event: Any) -> Told | None:
    """None where the model does not say."""
    usage = getattr(event, "usage", None)
    if not isinstance(usage, dict):
        return None
    prompt, completion = _first(usage, _PROMPT), _first(usage, _COMPLETION)
    if prompt is None and completion is None:
        return None
    return "usage", {
        "model": _text(getattr(event, "model", None)),
        "prompt_tokens": prompt or 0,
        "completion_tokens": completion or 0,
    }


def _first(usage: dict[str, object], names: tuple[str, ...]) -> int | None:
    return next((found for name in names if isinstance(found := usage.get(name), int)), None)


def _agent(event: Any) -> str | None:
    info = getattr(event, "agent_info", None)
    if isinstance(info, dict):
        return _text(info.get("role"))
    role = getattr(getattr(event, "agent", None), "role", None)
    return _text(role or getattr(event, "agent_role", None))


def _task(event: Any) -> str | None:
    """What the agent is asked to do, in words: the task's description, or the last message to it."""
    task = getattr(event, "task", None)
    if asked := _text(getattr(task, "description", None) or getattr(task, "name", None)):
        return asked
    messages = getattr(event, "messages", None)
    if isinstance(messages, list) and messages and isinstance(messages[-1], dict):
        messages = messages[-1].get("content")
    return _text(messages) if isinstance(messages, str) else _text(getattr(event, "task_name", None))


def _arguments(given: object) -> object:
    """The tool's arguments; CrewAI may have them as JSON text."""
    if isinstance(given, str) and given.lstrip().startswith("{"):
        import json

        try:
            return json.loads(given)
        except ValueError:
            return given
    return given


def _text(value: object) -> str | None:
    return None if value is None else str(value).strip()
