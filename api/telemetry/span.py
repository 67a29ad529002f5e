"""A span of a trace, independent of the encoding. Pure. Made by `run_spans` and `build_spans`."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

AttributeValue = str | int | float | bool
Attributes = Mapping[str, AttributeValue]
MAX_TEXT_CHARACTERS = 8192
"""Of an attribute; longer ones are cut."""
MAX_MESSAGE_CHARACTERS = 1000
_CUT = "…"
VIEWER_KIND, VIEWER_INPUT, VIEWER_OUTPUT = "openinference.span.kind", "input.value", "output.value"
"""Of OpenInference: what viewers for models show as the kind, the input and the output of a span."""
CHAIN = "CHAIN"
"""The kind of what is neither an agent nor a tool nor a model."""


@dataclass(frozen=True)
class Span:
    """One operation. `parent_id` None: the root. `error`: why it failed; None if it did not fail."""

    trace_id: str
    span_id: str
    parent_id: str | None
    name: str
    start: datetime
    end: datetime
    attributes: Attributes
    error: str | None = None
    is_client: bool = False
    """Whether it is a call of another service, such as a model."""


def cut(text: str, characters: int = MAX_TEXT_CHARACTERS) -> str:
    """Return a text of at most this many characters."""
    return text if len(text) <= characters else text[: characters - 1] + _CUT


def without_none(attributes: Mapping[str, AttributeValue | None]) -> dict[str, AttributeValue]:
    """Return the attributes that have a value; long texts are cut."""
    return {
        name: cut(value) if isinstance(value, str) else value
        for name, value in attributes.items()
        if value is not None
    }
