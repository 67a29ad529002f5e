"""What a request asks for, whichever of the APIs it came by, and the scripted answer to it."""

import json
import os
import re
from dataclasses import dataclass, field
from typing import Any

from sample import sample

Json = dict[str, Any]


@dataclass(frozen=True)
class Tool:
    """A function that the model may call."""

    name: str
    schema: Json


@dataclass(frozen=True)
class Prompt:
    """A conversation with the tools and the form that its answer may have."""

    text: str
    """All that was said."""
    question: str
    """What the user said last."""
    called: frozenset[str] = frozenset()
    """The tools that were called since then."""
    tools: tuple[Tool, ...] = ()
    choice: str = "auto"
    """`auto`, `none`, `required`, or the name of a tool."""
    schema: Json | None = None
    """The JSON Schema of the answer."""


@dataclass(frozen=True)
class Answer:
    """A text, or calls of tools as (name, arguments)."""

    text: str = ""
    calls: list[tuple[str, Json]] = field(default_factory=list)


def answer(prompt: Prompt) -> Answer:
    """Return the answer, always the same one to the same prompt.

    A tool that must be called is called. Of tools that may be called, the first is called once, with
    arguments made from its schema. Then the answer is a value of the requested schema, or a sentence.
    """
    chosen = next((tool for tool in prompt.tools if tool.name == prompt.choice), None)
    if chosen is None and prompt.tools and prompt.choice == "required":
        chosen = next((tool for tool in prompt.tools if tool.name not in prompt.called), prompt.tools[0])
    if chosen is None and prompt.tools and prompt.choice == "auto" and not prompt.called:
        chosen = prompt.tools[0]
    if chosen is not None:
        # A function without parameters may have no schema.
        return Answer(calls=[(chosen.name, sample(chosen.schema) if chosen.schema else {})])
    if prompt.schema is not None:
        return Answer(json.dumps(sample(prompt.schema)))
    words = " ".join(prompt.question.split())[:80]
    sentence = os.environ.get("MODEL_ANSWER") or f"A scripted answer to: {words}"
    # Prompts of CrewAI ask for this form.
    final = "Final Answer:" in prompt.text
    return Answer(f"Thought: I know the answer.\nFinal Answer: {sentence}" if final else sentence)


def plain(content: Any) -> str:
    """Return the text of a message's content, which is a text or a list of parts."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    return "\n".join(str(part.get("text") or "") for part in parts if isinstance(part, dict))


def tokens(text: str) -> int:
    """Return the length of a text in words and signs."""
    return len(re.findall(r"\w+|[^\w\s]", text))
