"""`/v1/responses`: requests as prompts, and answers as responses or their events."""

import json
from collections.abc import Iterator
from typing import Any

from prompt import Answer, Prompt, Tool, plain, tokens

Json = dict[str, Any]


def read(body: Json) -> Prompt:
    """Return the prompt of a request."""
    given = body.get("input") or ""
    items = [{"role": "user", "content": given}] if isinstance(given, str) else given
    users = [position for position, item in enumerate(items) if item.get("role") == "user"]
    last = users[-1] if users else 0
    said = [plain(item.get("content")) or str(item.get("output") or "") for item in items]
    form = (body.get("text") or {}).get("format") or {}
    choice = body.get("tool_choice") or "auto"
    return Prompt(
        "\n".join([str(body.get("instructions") or ""), *said]),
        said[last] if said else "",
        frozenset(str(item["name"]) for item in items[last:] if item.get("type") == "function_call"),
        tuple(
            Tool(tool["name"], tool.get("parameters") or {})
            for tool in body.get("tools") or ()
            if tool.get("type") == "function"
        ),
        choice if isinstance(choice, str) else str(choice.get("name")),
        {"json_schema": form.get("schema"), "json_object": {"type": "object"}}.get(str(form.get("type"))),
    )


def _items(prompt: Prompt, answer: Answer) -> list[Json]:
    if answer.calls:
        return [
            {
                "type": "function_call",
                "id": f"fc_{len(prompt.called)}_{position}",
                "call_id": f"call_{len(prompt.called)}_{position}",
                "name": name,
                "arguments": json.dumps(arguments),
                "status": "completed",
            }
            for position, (name, arguments) in enumerate(answer.calls)
        ]
    part = {"type": "output_text", "text": answer.text, "annotations": [], "logprobs": []}
    return [{"type": "message", "id": "msg_0", "role": "assistant", "status": "completed", "content": [part]}]


def whole(body: Json, prompt: Prompt, answer: Answer) -> Json:
    """Return the response."""
    asked, said = tokens(prompt.text), tokens(answer.text or json.dumps(answer.calls))
    return {
        "id": "resp_scripted",
        "object": "response",
        "created_at": 0,
        "status": "completed",
        "model": body.get("model") or "scripted",
        "output": _items(prompt, answer),
        "parallel_tool_calls": False,
        "tool_choice": body.get("tool_choice") or "auto",
        "tools": body.get("tools") or [],
        "text": body.get("text") or {"format": {"type": "text"}},
        "error": None,
        "incomplete_details": None,
        "instructions": body.get("instructions"),
        "metadata": {},
        "temperature": 1.0,
        "top_p": 1.0,
        "usage": {
            "input_tokens": asked,
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens": said,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": asked + said,
        },
    }


def stream(body: Json, prompt: Prompt, answer: Answer) -> Iterator[tuple[str, str]]:
    """Yield the events as (event, data)."""
    done = whole(body, prompt, answer)
    for number, (kind, data) in enumerate(_events(done)):
        yield kind, json.dumps({"type": kind, "sequence_number": number, **data})


def _events(done: Json) -> Iterator[tuple[str, Json]]:
    begun = {**done, "status": "in_progress", "output": [], "usage": None}
    yield "response.created", {"response": begun}
    yield "response.in_progress", {"response": begun}
    for index, item in enumerate(done["output"]):
        place = {"output_index": index, "item_id": item["id"]}
        empty = {"content": []} if item["type"] == "message" else {"arguments": ""}
        yield (
            "response.output_item.added",
            {
                "output_index": index,
                "item": {**item, **empty, "status": "in_progress"},
            },
        )
        if item["type"] == "message":
            part = item["content"][0]
            place["content_index"] = 0
            yield "response.content_part.added", {**place, "part": {**part, "text": ""}}
            yield "response.output_text.delta", {**place, "delta": part["text"], "logprobs": []}
            yield "response.output_text.done", {**place, "text": part["text"], "logprobs": []}
            yield "response.content_part.done", {**place, "part": part}
        else:
            yield "response.function_call_arguments.delta", {**place, "delta": item["arguments"]}
            yield (
                "response.function_call_arguments.done",
                {
                    **place,
                    "name": item["name"],
                    "arguments": item["arguments"],
                },
            )
        yield "response.output_item.done", {"output_index": index, "item": item}
    yield "response.completed", {"response": done}
