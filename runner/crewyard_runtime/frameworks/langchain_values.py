"""What LangChain and LangGraph call back with -> values of events. Pure. Called by `of_langchain`.

By what the values have, not by their classes: those move from version to version.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_ASKED = 2000  # characters of a question that are an agent's task
_UNNAMED = "LangGraph"  # what a graph is called that was compiled without a name


def node_of(name: object, tags: Any, metadata: Any) -> str | None:
    """The name of the node that this call is, None for any other call.

    Everything within a node carries the node's metadata; the node itself has its name and LangGraph's tag,
    and a @task of the functional API the path of one.
    """
    if not isinstance(metadata, dict) or not name or metadata.get("langgraph_node") != name:
        return None
    path = metadata.get("langgraph_path")
    is_task = isinstance(path, (list, tuple)) and len(path) == 4 and path[0] == "__pregel_push"
    if not any(str(tag).startswith("graph:step:") for tag in tags or ()) and not is_task:
        return None
    return None if str(name).startswith("__") else str(name)


def asked(inputs: Any) -> str | None:
    """The last question to an agent whose state has messages; None where there is none."""
    messages = inputs.get("messages") if isinstance(inputs, dict) else getattr(inputs, "messages", None)
    for message in reversed(messages if isinstance(messages, list) else []):
        if getattr(message, "type", None) == "human" and isinstance(getattr(message, "content", None), str):
            question = str(message.content).strip()
            return question[:_ASKED] or None
    return None


def step_of(metadata: dict[str, object], graph: str | None) -> str:
    """What is said of a node that was asked nothing: which step of the graph it is."""
    named = f" of {graph}" if graph and graph != _UNNAMED else ""
    return f"step {metadata.get('langgraph_step')}{named}"


def interrupted(error: BaseException) -> object | None:
    """What a node left with that is no failure (a question to a person, a jump to the parent graph), else
    None."""
    names = [kind.__name__ for kind in type(error).__mro__]
    if "GraphBubbleUp" not in names:
        return None
    given = error.args[0] if error.args else None
    if "GraphInterrupt" in names:
        values = [getattr(one, "value", one) for one in given] if isinstance(given, (list, tuple)) else []
        return {"interrupt": values}
    return {"command": node_output(given)}


def node_output(outputs: Any) -> object:
    """What a node returned; of a Command (ready-made agents return a list of one) what it changes and its
    goal."""
    one = outputs[0] if isinstance(outputs, list) and len(outputs) == 1 else outputs
    if type(one).__name__ != "Command" or not hasattr(one, "goto"):
        returned: object = outputs
        return returned
    said = {name: value for name in ("update", "goto", "resume") if (value := getattr(one, name, None))}
    return said["update"] if list(said) == ["update"] else said


def tool_output(output: Any) -> object:
    """What a tool returned; of a message to the model its content."""
    if hasattr(output, "tool_call_id") and hasattr(output, "content"):
        content: object = output.content
        return content
    return node_output(output)


def tokens(response: Any, model: str) -> dict[str, object] | None:
    """The usage of a model's answer, summed over its messages; None where the model does not say."""
    prompt = completion = 0
    said = False
    for one in [one for batch in getattr(response, "generations", None) or () for one in batch]:
        message = getattr(one, "message", None)
        used = getattr(message, "usage_metadata", None)
        if not isinstance(used, dict):
            continue
        said = True
        prompt += _count(used, "input_tokens")
        completion += _count(used, "output_tokens")
        metadata = getattr(message, "response_metadata", None)
        named = metadata if isinstance(metadata, dict) else {}
        model = str(named.get("model_name") or named.get("model") or model)
    output = getattr(response, "llm_output", None)
    whole = output if isinstance(output, dict) else {}
    used = whole.get("token_usage") or whole.get("usage")
    if not said and isinstance(used, dict):
        said = True
        prompt = _count(used, "prompt_tokens", "input_tokens")
        completion = _count(used, "completion_tokens", "output_tokens")
        model = str(whole.get("model_name") or model)
    if not said:
        return None
    return {"model": model or None, "prompt_tokens": prompt, "completion_tokens": completion}


def text(error: BaseException) -> str:
    """The exception in one line."""
    try:
        words = str(error)
    except Exception:  # a __str__ that fails
        words = ""
    return f"{type(error).__name__}: {words}" if words else type(error).__name__


def _count(used: dict[str, object], *names: str) -> int:
    return next((found for name in names if isinstance(found := used.get(name), int)), 0)
