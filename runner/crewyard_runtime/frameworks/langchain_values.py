"""Converts callback values of LangChain and LangGraph to event values. Pure.

Called by `langchain_callbacks`. Uses attributes, not classes, since the frameworks move classes between
versions.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_MAX_QUESTION_CHARS = 2000  # of a question used as an agent's task
_DEFAULT_GRAPH_NAME = "LangGraph"  # the name of a graph compiled without one


def node_name(name: object, tags: Any, metadata: Any) -> str | None:
    """Return the node name if this call is a node, else None.

    All calls inside a node carry the node's metadata; the node itself also has its name and LangGraph's tag,
    and a @task of the functional API has a task path.
    """
    if not isinstance(metadata, dict) or not name or metadata.get("langgraph_node") != name:
        return None
    path = metadata.get("langgraph_path")
    is_task = isinstance(path, (list, tuple)) and len(path) == 4 and path[0] == "__pregel_push"
    if not any(str(tag).startswith("graph:step:") for tag in tags or ()) and not is_task:
        return None
    return None if str(name).startswith("__") else str(name)


def last_question(inputs: Any) -> str | None:
    """Return the last human message in the state of an agent; None if there is none."""
    messages = inputs.get("messages") if isinstance(inputs, dict) else getattr(inputs, "messages", None)
    for message in reversed(messages if isinstance(messages, list) else []):
        if getattr(message, "type", None) == "human" and isinstance(getattr(message, "content", None), str):
            question = str(message.content).strip()
            return question[:_MAX_QUESTION_CHARS] or None
    return None


def step_name(metadata: dict[str, object], graph: str | None) -> str:
    """Return the task of a node without a question: its step of the graph."""
    named = f" of {graph}" if graph and graph != _DEFAULT_GRAPH_NAME else ""
    return f"step {metadata.get('langgraph_step')}{named}"


def interruption(error: BaseException) -> object | None:
    """Return the interrupt or the jump to the parent graph that an exception stands for; None if it is
    a failure.
    """
    names = [kind.__name__ for kind in type(error).__mro__]
    if "GraphBubbleUp" not in names:
        return None
    argument = error.args[0] if error.args else None
    if "GraphInterrupt" in names:
        values = (
            [getattr(item, "value", item) for item in argument] if isinstance(argument, (list, tuple)) else []
        )
        return {"interrupt": values}
    return {"command": node_output(argument)}


def node_output(outputs: Any) -> object:
    """Return the output of a node; for a Command (prebuilt agents: in a list of one) its update and goto."""
    item = outputs[0] if isinstance(outputs, list) and len(outputs) == 1 else outputs
    if type(item).__name__ != "Command" or not hasattr(item, "goto"):
        returned: object = outputs
        return returned
    said = {name: value for name in ("update", "goto", "resume") if (value := getattr(item, name, None))}
    return said["update"] if list(said) == ["update"] else said


def tool_output(output: Any) -> object:
    """Return the output of a tool; for a message to the model its content."""
    if hasattr(output, "tool_call_id") and hasattr(output, "content"):
        content: object = output.content
        return content
    return node_output(output)


def token_usage(response: Any, model: str) -> dict[str, object] | None:
    """Return the token usage of a response, summed over its prompts; None if the model reports none."""
    prompt = completion = 0
    said = False
    for batch in getattr(response, "generations", None) or ():
        for item in batch:
            message = getattr(item, "message", None)
            used = getattr(message, "usage_metadata", None)
            if not isinstance(used, dict) or used.get("total_cost") == 0:
                continue  # LangChain says so of an answer from its cache
            said = True
            prompt += _count(used, "input_tokens")
            completion += _count(used, "output_tokens")
            metadata = getattr(message, "response_metadata", None)
            named = metadata if isinstance(metadata, dict) else {}
            model = str(named.get("model_name") or named.get("model") or model)
            break  # each of several answers to one prompt has the tokens of the whole call
    output = getattr(response, "llm_output", None)
    output_fields = output if isinstance(output, dict) else {}
    used = output_fields.get("token_usage") or output_fields.get("usage")
    if not said and isinstance(used, dict):
        said = True
        prompt = _count(used, "prompt_tokens", "input_tokens")
        completion = _count(used, "completion_tokens", "output_tokens")
        model = str(output_fields.get("model_name") or model)
    if not said:
        return None
    return {"model": model or None, "prompt_tokens": prompt, "completion_tokens": completion}


def _count(used: dict[str, object], *names: str) -> int:
    return next((value for name in names if isinstance(value := used.get(name), int)), 0)
