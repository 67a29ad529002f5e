"""Converts CrewAI's events and results to run events and outputs. Pure.

Called by `crewai_events`, `call` and `crew`. Uses attributes, not classes, since CrewAI moves classes between
versions.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    RunEvent = tuple[str, dict[str, object]]

_RESULTS = ("CrewOutput", "TaskOutput", "LiteAgentOutput")
_MAX_DEPTH = 4  # levels of lists and dicts to search for results


def outcome(value: Any, depth: int = 0) -> object:
    """Return the run's output for the return value of a crew or flow.

    For a result, the object that the crew was to produce (output_pydantic, output_json), else its text; other
    values unchanged. The remaining parts of a result, such as all messages, are already in the events.
    """
    kind = type(value)
    if kind.__name__ in _RESULTS and kind.__module__.startswith("crewai."):
        produced: object = value.pydantic if value.pydantic is not None else getattr(value, "json_dict", None)
        return value.raw if produced is None else produced
    if depth < _MAX_DEPTH and kind is list:
        return [outcome(item, depth + 1) for item in value]
    if depth < _MAX_DEPTH and kind is dict:
        return {key: outcome(item, depth + 1) for key, item in value.items()}
    if kind.__module__ == "crewai.types.streaming" and hasattr(kind, "__iter__"):
        for _ in value:  # a crew with stream=True runs while its output is read
            pass
        return outcome(value.result, depth + 1)
    same: object = value
    return same


def output_file(event: Any) -> str | None:
    """Return the file that the task of an event of CrewAI writes its output to; None if there is none."""
    path = getattr(getattr(event, "task", None), "output_file", None)
    return str(path) if path else None


def missing_inputs(crew: Any, inputs: dict[str, object]) -> list[str]:
    """Return the placeholders of a crew's tasks and agents if the run has no input.

    With some input CrewAI reports missing ones itself; without any it would send "{topic}" to the model.
    """
    fetch_names = getattr(crew, "fetch_inputs", None)
    if inputs or getattr(crew, "before_kickoff_callbacks", None) or not callable(fetch_names):
        return []
    return sorted(str(name) for name in fetch_names() if str(name).isidentifier())


def translate(event: Any) -> RunEvent | None:
    """Return the run event for an event of CrewAI; None if there is none. Pure.

    Uses its `type`, which is stable across versions, unlike the classes.
    """
    kind = _kind(event)
    if kind in _AGENT:
        return _of_agent(_AGENT[kind], event)
    if kind in _TOOL:
        return _of_tool(_TOOL[kind], event)
    if kind == "llm_call_completed":
        return _usage(event)
    return None


def agent_id(event: Any) -> str | None:
    """Return the id of the agent of an event, which tells agents of one role apart; None if it has none."""
    info = getattr(event, "agent_info", None)
    found = info.get("id") if isinstance(info, dict) else getattr(getattr(event, "agent", None), "id", None)
    return _text(found)


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


def _of_agent(type: str, event: Any) -> RunEvent:
    data: dict[str, object] = {"agent": _agent(event), "task": _task(event)}
    if type == "agent.completed":
        data["output"] = getattr(event, "output", None)
    elif type == "agent.error":
        data["error"] = _text(getattr(event, "error", None)) or "It failed without a message."
    return type, data


def _of_tool(type: str, event: Any) -> RunEvent:
    data: dict[str, object] = {"agent": _agent(event), "tool": _text(getattr(event, "tool_name", None))}
    failure = getattr(event, "failure", None)
    if type == "tool.called":
        data["input"] = _arguments(getattr(event, "tool_args", None))
    elif type == "tool.error" or failure is not None:
        # A tool may also return a failure.
        type = "tool.error"
        error = getattr(failure, "message", None) if failure is not None else getattr(event, "error", None)
        data["error"] = _text(error) or "It failed without a message."
    else:
        data["output"] = getattr(event, "output", None)
    return type, data


def _usage(event: Any) -> RunEvent | None:
    """Return a usage event; None if the model reports no usage."""
    usage = getattr(event, "usage", None)
    if not isinstance(usage, dict):
        return None
    prompt, completion = _first(usage, _PROMPT), _first(usage, _COMPLETION)
    if prompt is None and completion is None:
        return None
    if isinstance(total := usage.get("total_token_count"), int):  # of Gemini, with the model's thoughts
        completion = max(completion or 0, total - (prompt or 0))
    return "usage", {
        "model": _text(getattr(event, "model", None)),
        "prompt_tokens": prompt or 0,
        "completion_tokens": completion or 0,
    }


def _first(usage: dict[str, object], names: tuple[str, ...]) -> int | None:
    return next((value for name in names if isinstance(value := usage.get(name), int)), None)


def _agent(event: Any) -> str | None:
    info = getattr(event, "agent_info", None)
    if isinstance(info, dict):
        return _text(info.get("role"))
    role = getattr(getattr(event, "agent", None), "role", None)
    return _text(role or getattr(event, "agent_role", None))


def _task(event: Any) -> str | None:
    """Return the agent's task as text: the description of the task, or the last message to the agent."""
    task = getattr(event, "task", None)
    if description := _text(getattr(task, "description", None) or getattr(task, "name", None)):
        return description
    messages = getattr(event, "messages", None)
    if isinstance(messages, list) and messages and isinstance(messages[-1], dict):
        messages = messages[-1].get("content")
    return _text(messages) if isinstance(messages, str) else _text(getattr(event, "task_name", None))


def _arguments(arguments: object) -> object:
    """Return the tool's arguments, which CrewAI may give as JSON text."""
    if isinstance(arguments, str) and arguments.lstrip().startswith("{"):
        import json

        try:
            return json.loads(arguments)
        except ValueError:
            return arguments
    return arguments


def _text(value: object) -> str | None:
    return None if value is None else str(value).strip()
