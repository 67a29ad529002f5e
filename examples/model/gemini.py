"""`/v1beta/models/{model}:generateContent`, Gemini's API: requests as prompts, and answers as candidates."""

import json
import re
from collections.abc import Iterator
from typing import Any

from prompt import Answer, Prompt, Tool, tokens

Json = dict[str, Any]


def read(body: Json) -> Prompt:
    """Return the prompt of a request."""
    contents = body.get("contents") or []
    # The result of a tool has the role of the user, too.
    users = [
        position
        for position, content in enumerate(contents)
        if content.get("role", "user") == "user" and not _of_parts(content, "functionResponse")
    ]
    last = users[-1] if users else 0
    calls = [call["name"] for content in contents[last:] for call in _of_parts(content, "functionCall")]
    # What another agent called, in the words of the Agent Development Kit: transfers would never end.
    calls += re.findall(r"called tool `(\w+)`", "\n".join(map(_text, contents)))
    tools = [
        Tool(
            function["name"],
            _schema(_field(function, "parametersJsonSchema") or function.get("parameters")),
        )
        for tool in body.get("tools") or ()
        for function in _field(tool, "functionDeclarations") or ()
    ]
    calling = _field(_field(body, "toolConfig") or {}, "functionCallingConfig") or {}
    allowed = _field(calling, "allowedFunctionNames") or []
    mode = {"ANY": "required", "NONE": "none"}.get(calling.get("mode") or "", "auto")
    form = _field(body, "generationConfig") or {}
    schema = _field(form, "responseJsonSchema") or _field(form, "responseSchema")
    return Prompt(
        "\n".join([_text(_field(body, "systemInstruction") or {}), *map(_text, contents)]),
        _text(contents[last]) if contents else "",
        frozenset(map(str, calls)),
        tuple(tools),
        str(allowed[0]) if mode == "required" and len(allowed) == 1 else mode,
        _schema(schema) if schema else None,
    )


def _field(values: Json, name: str) -> Any:
    """Return the field of this name, or of the name with underscores: the API reads both."""
    return values.get(name, values.get(re.sub("[A-Z]", lambda capital: f"_{capital[0].lower()}", name)))


def _of_parts(content: Json, kind: str) -> list[Any]:
    parts = content.get("parts") or ()
    return [found for part in parts if (found := _field(part, kind)) is not None]


def _text(content: Json) -> str:
    return "\n".join(map(str, _of_parts(content, "text")))


def _schema(schema: Any) -> Any:
    """Return a schema with the types of JSON Schema: Gemini has them in capitals."""
    if isinstance(schema, list):
        return [_schema(part) for part in schema]
    if not isinstance(schema, dict):
        return schema or {}
    named = {name: _schema(part) if isinstance(part, dict | list) else part for name, part in schema.items()}
    kind = named.get("type")
    return {**named, "type": kind.lower()} if isinstance(kind, str) else named


def whole(body: Json, prompt: Prompt, answer: Answer) -> Json:
    """Return the response."""
    parts: list[Json] = [
        {"functionCall": {"name": name, "args": arguments}} for name, arguments in answer.calls
    ] or [{"text": answer.text}]
    asked, said = tokens(prompt.text), tokens(json.dumps(parts))
    return {
        "candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": "STOP", "index": 0}],
        "usageMetadata": {
            "promptTokenCount": asked,
            "candidatesTokenCount": said,
            "totalTokenCount": asked + said,
        },
        "modelVersion": "scripted",
    }


def stream(body: Json, prompt: Prompt, answer: Answer) -> Iterator[tuple[str, str]]:
    """Yield the events as (event, data): the whole response as the only one."""
    yield "", json.dumps(whole(body, prompt, answer))
