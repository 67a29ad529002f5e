"""The scripted model of examples/model, as the OpenAI client sees it."""

import json
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from openai import OpenAI

from tests.testbed import ports

MODEL = Path(__file__).parents[2] / "examples" / "model"
WEATHER = {
    "type": "object",
    "properties": {"place": {"type": "string"}, "unit": {"enum": ["F", "C"]}},
    "required": ["place", "unit"],
}
PLAN = {
    "type": "object",
    "properties": {
        "steps": {"type": "array", "minItems": 2, "items": {"$ref": "#/$defs/Step"}},
        "done": {"type": "boolean"},
        "score": {"type": "number", "minimum": 2, "maximum": 5},
        "due": {"type": "string", "format": "date"},
        "note": {"anyOf": [{"type": "string", "maxLength": 3}, {"type": "null"}]},
    },
    "required": ["steps", "done", "score", "due", "note"],
    "additionalProperties": False,
    "$defs": {
        "Step": {
            "type": "object",
            "properties": {"name": {"type": "string"}, "steps": {"$ref": "#/$defs/Steps"}},
            "required": ["name"],
        },
        "Steps": {"type": "array", "items": {"$ref": "#/$defs/Step"}},
    },
}
USER: Any = [{"role": "user", "content": "How high is the tide?"}]
ANSWER = "A scripted answer to: How high is the tide?"
CHAT_TOOL: Any = {"type": "function", "function": {"name": "weather", "parameters": WEATHER}}
TOOL: Any = {"type": "function", "name": "weather", "parameters": WEATHER, "strict": True}
CALLED = {"place": "example", "unit": "C"}


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    port = ports.free_port()
    process = subprocess.Popen([sys.executable, str(MODEL / "server.py"), str(port)], cwd=MODEL)
    try:
        address = f"http://127.0.0.1:{port}/v1"
        while process.poll() is None:
            try:
                urllib.request.urlopen(f"{address}/models").close()
                break
            except urllib.error.URLError:
                pass
        yield address
    finally:
        process.terminate()
        process.wait()


@pytest.fixture(scope="module")
def client(url: str) -> OpenAI:
    return OpenAI(base_url=url, api_key="none", max_retries=0)


def test_a_chat_gives_the_same_answer_each_time(client: OpenAI) -> None:
    first, second = (client.chat.completions.create(model="gpt-4o", messages=USER) for _ in range(2))
    assert first == second
    assert first.choices[0].message.content == ANSWER
    assert (
        first.usage and first.usage.total_tokens == first.usage.prompt_tokens + first.usage.completion_tokens
    )


def test_a_streamed_chat_is_the_same_text(client: OpenAI) -> None:
    options: Any = {"include_usage": True}
    chunks = list(
        client.chat.completions.create(model="m", messages=USER, stream=True, stream_options=options)
    )
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices) == ANSWER
    assert chunks[-1].usage is not None


def test_a_tool_is_called_once_and_then_answered(client: OpenAI) -> None:
    asked = client.chat.completions.create(model="m", messages=USER, tools=[CHAT_TOOL])
    message = asked.choices[0].message
    assert asked.choices[0].finish_reason == "tool_calls" and message.tool_calls
    call: Any = message.tool_calls[0]
    assert json.loads(call.function.arguments) == CALLED
    result: Any = {"role": "tool", "tool_call_id": call.id, "content": "2 m"}
    messages = [*USER, message.model_dump(exclude_none=True), result]
    told = client.chat.completions.create(model="m", messages=messages, tools=[CHAT_TOOL])
    assert told.choices[0].message.content == ANSWER


def test_a_streamed_tool_call_has_its_arguments(client: OpenAI) -> None:
    with client.chat.completions.stream(model="m", messages=USER, tools=[CHAT_TOOL]) as stream:
        final: Any = stream.get_final_completion().choices[0].message.tool_calls
    assert (final[0].function.name, json.loads(final[0].function.arguments)) == ("weather", CALLED)


def test_a_json_schema_is_satisfied(client: OpenAI) -> None:
    form: Any = {"type": "json_schema", "json_schema": {"name": "plan", "schema": PLAN, "strict": True}}
    said = client.chat.completions.create(model="m", messages=USER, response_format=form)
    value = json.loads(said.choices[0].message.content or "")
    jsonschema.validate(value, PLAN)
    assert len(value["steps"]) == 2


def test_a_required_tool_is_called_even_again(client: OpenAI) -> None:
    chosen: Any = {"type": "function", "function": {"name": "weather"}}
    for choice in (chosen, "required"):
        said = client.chat.completions.create(model="m", messages=USER, tools=[CHAT_TOOL], tool_choice=choice)
        assert said.choices[0].message.tool_calls
    none = client.chat.completions.create(model="m", messages=USER, tools=[CHAT_TOOL], tool_choice="none")
    assert none.choices[0].message.content == ANSWER


def test_responses_have_text_tools_and_schemas(client: OpenAI) -> None:
    assert client.responses.create(model="m", input="How high is the tide?").output_text == ANSWER
    asked: Any = client.responses.create(model="m", input=USER, tools=[TOOL])
    call = asked.output[0]
    assert (call.name, json.loads(call.arguments)) == ("weather", CALLED)
    result: Any = {"type": "function_call_output", "call_id": call.call_id, "output": "2 m"}
    again: Any = [*USER, call.model_dump(exclude_none=True), result]
    assert client.responses.create(model="m", input=again, tools=[TOOL]).output_text == ANSWER
    form: Any = {"format": {"type": "json_schema", "name": "plan", "schema": PLAN}}
    jsonschema.validate(
        json.loads(client.responses.create(model="m", input=USER, text=form).output_text), PLAN
    )


def test_a_streamed_response_ends_with_the_whole(client: OpenAI) -> None:
    with client.responses.stream(model="m", input=USER) as stream:
        deltas = [event.delta for event in stream if event.type == "response.output_text.delta"]
        final = stream.get_final_response()
    assert ("".join(deltas), final.output_text) == (ANSWER, ANSWER)
    with client.responses.stream(model="m", input=USER, tools=[TOOL]) as stream:
        called: Any = stream.get_final_response().output[0]
    assert json.loads(called.arguments) == CALLED


def test_embeddings_depend_on_the_text_alone(client: OpenAI) -> None:
    texts = ["tides", "harbours", "tides"]
    vectors = [item.embedding for item in client.embeddings.create(model="m", input=texts).data]
    assert vectors[0] == vectors[2] != vectors[1]
    assert len(vectors[0]) == 1536 and abs(sum(value * value for value in vectors[0]) - 1) < 1e-3
    short = client.embeddings.create(model="m", input="tides", dimensions=8, encoding_format="float")
    assert len(short.data[0].embedding) == 8


def post(url: str, body: Any) -> tuple[int, str]:
    """Return status and text of a response, errors too."""
    request = urllib.request.Request(url, json.dumps(body).encode(), {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request) as response:
            return response.status, response.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def test_messages_of_anthropic_are_answered(url: str) -> None:
    status, text = post(f"{url}/messages", {"model": "claude", "messages": USER})
    assert (status, json.loads(text)["content"]) == (200, [{"type": "text", "text": ANSWER}])
    tools = [{"name": "weather", "input_schema": WEATHER}]
    _, text = post(f"{url}/messages", {"model": "claude", "messages": USER, "tools": tools})
    use = json.loads(text)["content"][0]
    assert (use["type"], use["name"], use["input"]) == ("tool_use", "weather", CALLED)
    result = {"type": "tool_result", "tool_use_id": use["id"], "content": "2 m"}
    messages = [*USER, {"role": "assistant", "content": [use]}, {"role": "user", "content": [result]}]
    _, text = post(
        f"{url}/messages", {"model": "claude", "messages": messages, "tools": tools, "stream": True}
    )
    assert ANSWER in text and text.rstrip().endswith('{"type": "message_stop"}')


def test_contents_of_gemini_are_answered(url: str) -> None:
    base = f"{url.removesuffix('/v1')}/v1beta/models/gemini-2.5-flash"
    contents: Any = [{"role": "user", "parts": [{"text": "How high is the tide?"}]}]
    status, text = post(f"{base}:generateContent", {"contents": contents})
    said = json.loads(text)["candidates"][0]["content"]
    assert (status, said) == (200, {"role": "model", "parts": [{"text": ANSWER}]})
    in_capitals = json.loads(
        json.dumps(WEATHER).replace('"string"', '"STRING"').replace('"object"', '"OBJECT"')
    )
    tools = [{"functionDeclarations": [{"name": "weather", "parameters": in_capitals}]}, {"googleSearch": {}}]
    _, text = post(f"{base}:generateContent", {"contents": contents, "tools": tools})
    called = json.loads(text)["candidates"][0]["content"]
    assert called["parts"] == [{"functionCall": {"name": "weather", "args": CALLED}}]
    result = {
        "role": "user",
        "parts": [{"functionResponse": {"name": "weather", "response": {"high": "2 m"}}}],
    }
    again = {"contents": [*contents, called, result], "tools": tools}
    _, text = post(f"{base}:streamGenerateContent?alt=sse", again)
    assert json.loads(text.removeprefix("data: "))["candidates"][0]["content"] == said
    form = {"responseMimeType": "application/json", "responseJsonSchema": PLAN}
    _, text = post(f"{base}:generateContent", {"contents": contents, "generationConfig": form})
    jsonschema.validate(json.loads(json.loads(text)["candidates"][0]["content"]["parts"][0]["text"]), PLAN)
    declared = [{"function_declarations": [{"name": "weather", "parameters_json_schema": WEATHER}]}]
    _, text = post(f"{base}:generateContent", {"contents": contents, "tools": declared})
    assert json.loads(text)["candidates"][0]["content"] == called
    # The Agent Development Kit has these words for the calls of another agent.
    known = {"role": "user", "parts": [{"text": "[a] called tool `weather` with parameters: {}"}]}
    _, text = post(f"{base}:generateContent", {"contents": [*contents, known], "tools": tools})
    assert "text" in json.loads(text)["candidates"][0]["content"]["parts"][0]
    forced = {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["weather"]}}
    _, text = post(f"{base}:generateContent", {**again, "toolConfig": forced})
    assert "functionCall" in json.loads(text)["candidates"][0]["content"]["parts"][0]


def test_a_tool_without_parameters_is_called_with_none(client: OpenAI, url: str) -> None:
    tool: Any = {"type": "function", "function": {"name": "now"}}
    asked: Any = client.chat.completions.create(model="m", messages=USER, tools=[tool]).choices[0].message
    assert asked.tool_calls[0].function.arguments == "{}"
    body = {"contents": [{"parts": [{"text": "?"}]}], "tools": [{"functionDeclarations": [{"name": "now"}]}]}
    _, text = post(f"{url.removesuffix('/v1')}/v1beta/models/m:generateContent", body)
    call = json.loads(text)["candidates"][0]["content"]["parts"]
    assert call == [{"functionCall": {"name": "now", "args": {}}}]


@pytest.mark.parametrize(("path", "status"), [("/nothing", 404), ("/chat/completions", 400)])
def test_what_it_cannot_read_is_named(url: str, path: str, status: int) -> None:
    found, text = post(url + path, ["no", "object"])
    assert (found, path in json.loads(text)["error"]["message"]) == (status, True)
