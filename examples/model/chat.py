"""`/v1/chat/completions`: requests as prompts, and answers as completions or their chunks."""

import json
from collections.abc import Iterator
from typing import Any

from prompt import Answer, Prompt, Tool, plain, tokens

Json = dict[str, Any]


def read(body: Json) -> Prompt:
    """Return the prompt of a request."""
    messages = body.get("messages") or []
    users = [position for position, message in enumerate(messages) if message.get("role") == "user"]
    last = users[-1] if users else 0
    calls = [call for message in messages[last:] for call in message.get("tool_calls") or ()]
    form = body.get("response_format") or {}
    schema = {"json_schema": (form.get("json_schema") or {}).get("schema"), "json_object": {"type": "object"}}
    choice = body.get("tool_choice") or "auto"
    return Prompt(
        "\n".join(plain(message.get("content")) for message in messages),
        plain(messages[last].get("content")) if messages else "",
        frozenset(str(call["function"]["name"]) for call in calls),
        tuple(
            Tool(tool["function"]["name"], tool["function"].get("parameters") or {})
            for tool in body.get("tools") or ()
            if "function" in tool
        ),
        choice if isinstance(choice, str) else str((choice.get("function") or {}).get("name")),
        schema.get(str(form.get("type"))),
    )


def _calls(answer: Answer, prompt: Prompt) -> list[Json]:
    return [
        {
            "id": f"call_{len(prompt.called)}_{position}",
            "type": "function",
            "function": {"name": name, "arguments": json.dumps(arguments)},
        }
        for position, (name, arguments) in enumerate(answer.calls)
    ]


def _usage(answer: Answer, prompt: Prompt) -> Json:
    asked, said = tokens(prompt.text), tokens(answer.text or json.dumps(answer.calls))
    return {"prompt_tokens": asked, "completion_tokens": said, "total_tokens": asked + said}


def _head(body: Json, kind: str) -> Json:
    return {"id": "chatcmpl-scripted", "object": kind, "created": 0, "model": body.get("model") or "scripted"}


def whole(body: Json, prompt: Prompt, answer: Answer) -> Json:
    """Return the completion."""
    calls = _calls(answer, prompt)
    message: Json = {"role": "assistant", "content": answer.text if not calls else None, "refusal": None}
    choice = {
        "index": 0,
        "message": {**message, "tool_calls": calls} if calls else message,
        "finish_reason": "tool_calls" if calls else "stop",
        "logprobs": None,
    }
    return {**_head(body, "chat.completion"), "choices": [choice], "usage": _usage(answer, prompt)}


def stream(body: Json, prompt: Prompt, answer: Answer) -> Iterator[tuple[str, str]]:
    """Yield the chunks as (event, data)."""
    head = _head(body, "chat.completion.chunk")

    def chunk(delta: Json, reason: str | None = None) -> tuple[str, str]:
        choice = {"index": 0, "delta": delta, "finish_reason": reason, "logprobs": None}
        return "", json.dumps({**head, "choices": [choice]})

    yield chunk({"role": "assistant", "content": ""})
    for position, call in enumerate(_calls(answer, prompt)):
        yield chunk({"tool_calls": [{"index": position, **call}]})
    for start in range(0, len(answer.text), 16):
        yield chunk({"content": answer.text[start : start + 16]})
    yield chunk({}, "tool_calls" if answer.calls else "stop")
    if (body.get("stream_options") or {}).get("include_usage"):
        yield "", json.dumps({**head, "choices": [], "usage": _usage(answer, prompt)})
    yield "", "[DONE]"
