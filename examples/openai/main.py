"""A crew that asks a model, calls the tool that the model chooses, and asks again."""

import json
from typing import Any

from openai import OpenAI

TIDE_TABLE = {
    "type": "function",
    "function": {
        "name": "read_tide_table",
        "description": "Return the height of the tide in metres.",
        "parameters": {
            "type": "object",
            "properties": {"place": {"type": "string"}},
            "required": ["place"],
        },
    },
}


def read_tide_table(place: str) -> str:
    """Return the height of the tide at a place."""
    return f"{place}: {len(place) / 4:.2f} m"


def kickoff(inputs: dict[str, Any]) -> dict[str, Any]:
    """Answer a question with the model of OPENAI_BASE_URL."""
    client = OpenAI(timeout=10, max_retries=0)
    question = f"How high is the tide at {inputs.get('place', 'the harbour')}?"
    messages: list[Any] = [{"role": "user", "content": question}]
    tools: list[Any] = [TIDE_TABLE]
    first = client.chat.completions.create(model="gpt-4o-mini", messages=messages, tools=tools)
    message = first.choices[0].message
    messages.append(message.model_dump(exclude_none=True))
    for call in message.tool_calls or ():
        found = read_tide_table(**json.loads(call.function.arguments))
        print(f"{call.function.name}: {found}")
        messages.append({"role": "tool", "tool_call_id": call.id, "content": found})
    last = client.chat.completions.create(model="gpt-4o-mini", messages=messages, tools=tools)
    return {"answer": last.choices[0].message.content, "calls": len(message.tool_calls or ())}
