"""What an operation promises: the answers it can give. Pure.

Called by the tables of `api.v1`, which give each operation its answers, and by
`api.openapi.document`, which writes them down.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from api.http import negotiation
from api.http.query import Parameter


@dataclass(frozen=True)
class Answer:
    """An answer other than an error. `content`: media type → JSON Schema; none for an answer without body.

    `headers` are those it always has, `optional` those it may have, besides the ones that all answers have.
    """

    status: int
    description: str
    content: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    headers: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()
    examples: Mapping[str, Any] = field(default_factory=dict)
    """By media type."""


class Operation(Protocol):
    """What a description needs to know of an operation; `api.routing.endpoint.Endpoint` has all of it."""

    @property
    def method(self) -> str:
        """The HTTP method."""

    @property
    def path(self) -> str:
        """The path, with its placeholders."""

    @property
    def scope(self) -> str | None:
        """The scope a key needs; None where no key is asked for."""

    @property
    def query(self) -> tuple[Parameter, ...]:
        """The query parameters."""

    @property
    def headers(self) -> tuple[Parameter, ...]:
        """The headers that mean something to this operation."""

    @property
    def body(self) -> Mapping[str, Any] | None:
        """The body's JSON Schema."""

    @property
    def takes(self) -> str:
        """The body's media type."""

    @property
    def produces(self) -> tuple[str, ...]:
        """The media types it can answer with."""

    @property
    def head(self) -> bool:
        """Whether HEAD is answered too."""

    @property
    def summary(self) -> str:
        """What it does, in a few words that begin with a verb."""

    @property
    def description(self) -> str:
        """What it does, in sentences."""

    @property
    def answers(self) -> tuple[Answer, ...]:
        """The answers other than errors."""

    @property
    def refusals(self) -> tuple[int, ...]:
        """Statuses of errors besides those that every operation of its kind can answer with."""

    @property
    def example(self) -> Any:
        """A body that it takes."""


@dataclass(frozen=True)
class Open:
    """An operation outside of the table of endpoints: it asks for no key."""

    method: str
    path: str
    summary: str
    description: str
    answers: tuple[Answer, ...]
    refusals: tuple[int, ...] = ()
    query: tuple[Parameter, ...] = ()
    headers: tuple[Parameter, ...] = ()
    body: Mapping[str, Any] | None = None
    takes: str = negotiation.JSON
    produces: tuple[str, ...] = (negotiation.ANY,)
    head: bool = False
    example: Any = None
    scope: None = None


def one(schema: Mapping[str, Any], example: Any, status: int = 200, description: str = "") -> Answer:
    """A single object; one that was made says where it is."""
    shape = {
        "type": "object",
        "required": ["data"],
        "properties": {"data": schema},
        "additionalProperties": False,
    }
    return Answer(
        status,
        description or ("It was made." if status == 201 else "The object."),
        {negotiation.JSON: shape},
        headers=("Location",) if status == 201 else (),
        examples={negotiation.JSON: {"data": example}},
    )


PAGINATION: Mapping[str, Any] = {
    "title": "Pagination",
    "type": "object",
    "required": ["total", "page", "per_page", "has_more"],
    "properties": {
        "total": {"type": "integer", "minimum": 0, "description": "How many there are on all pages."},
        "page": {"type": "integer", "minimum": 1, "description": "Which page this is."},
        "per_page": {"type": "integer", "minimum": 1, "description": "How many a page has at most."},
        "has_more": {"type": "boolean", "description": "Whether a later page has more."},
    },
    "additionalProperties": False,
}


def page(schema: Mapping[str, Any], example: Any, linked: bool = True) -> Answer:
    """A page of a list; the header Link has the addresses of the pages around it."""
    shape = {
        "type": "object",
        "required": ["data", "pagination"],
        "properties": {"data": {"type": "array", "items": schema}, "pagination": PAGINATION},
        "additionalProperties": False,
    }
    around = {"total": 1, "page": 1, "per_page": 20, "has_more": False}
    return Answer(
        200,
        "A page, newest first.",
        {negotiation.JSON: shape},
        headers=("Link",) if linked else (),
        examples={negotiation.JSON: {"data": [example], "pagination": around}},
    )


def nothing(description: str, status: int = 204) -> Answer:
    """An answer without a body."""
    return Answer(status, description)
