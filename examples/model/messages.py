"""`/v1/messages`, Anthropic's API: requests as prompts, and answers as messages or their events."""

import json
from collections.abc import Iterator
from typing import Any

from prompt import Answer, Prompt, Tool, plain, tokens

Json = dict[str, Any]


def read(body: Json) -> Prompt:
    """Return the prompt of a request."""
    messages = body.get("messages") or []
    # The result of a tool has the role of the user, too.
    users = [
        position
        for position, message in enumerate(messages)
        if message.get("role") == "user" and not _parts(message, "tool_result")
    ]
    last = users[-1] if users else 0
    uses = [part for message in messages[last:] for part in _parts(message, "tool_use")]
    choice = body.get("tool_choice") or {"type": "auto"}
    kind = {"any": "required", "tool": str(choice.get("name"))}.get(choice["type"], choice["type"])
    return Prompt(
        "\n".join([plain(body.get("system")), *(plain(message.get("content")) for message in messages)]),
        plain(messages[last].get("content")) if messages else "",
        frozenset(str(use["name"]) for use in uses),
        tuple(Tool(tool["name"], tool.get("input_schema") or {}) for tool in body.get("tools") or ()),
        kind,
        ((body.get("output_config") or {}).get("format") or body.get("output_format") or {}).get("schema"),
    )


def _parts(message: Json, kind: str) -> list[Json]:
    content = message.get("content")
    return [part for part in content if part.get("type") == kind] if isinstance(content, list) else []


def whole(body: Json, prompt: Prompt, answer: Answer) -> Json:
    """Return the message."""
    content: list[Json] = [
        {"type": "tool_use", "id": f"toolu_{len(prompt.called)}_{position}", "name": name, "input": arguments}
        for position, (name, arguments) in enumerate(answer.calls)
    ] or [{"type": "text", "text": answer.text}]
    return {
        "id": "msg_scripted",
        "type": "message",
        "role": "assistant",
        "model": body.get("model") or "scripted",
        "content": content,
        "stop_reason": "tool_use" if answer.calls else "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": tokens(prompt.text), "output_tokens": tokens(json.dumps(content))},
    }


def stream(body: Json, prompt: Prompt, answer: Answer) -> Iterator[tuple[str, str]]:
    """Yield the events as (event, data)."""
    for kind, data in _events(whole(body, prompt, answer)):
        yield kind, json.dumps({"type": kind, **data})


def _events(done: Json) -> Iterator[tuple[str, Json]]:
    yield "message_start", {"message": {**done, "content": [], "stop_reason": None}}
    for index, part in enumerate(done["content"]):
        if part["type"] == "text":
            empty, delta = {"text": ""}, {"type": "text_delta", "text": part["text"]}
        else:
            empty, delta = (
                {"input": {}},
                {"type": "input_json_delta", "partial_json": json.dumps(part["input"])},
            )
        yield "content_block_start", {"index": index, "content_block": {**part, **empty}}
        yield "content_block_delta", {"index": index, "delta": delta}
        yield "content_block_stop", {"index": index}
    ended = {"stop_reason": done["stop_reason"], "stop_sequence": None}
    yield "message_delta", {"delta": ended, "usage": {"output_tokens": done["usage"]["output_tokens"]}}
    yield "message_stop", {}
