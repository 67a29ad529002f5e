"""Description of an API operation and its responses. Pure.

Called by the endpoint tables of `api.v1`, which declare the responses, and by
`api.openapi.document`, which renders them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from api.http import negotiation
from api.http.query import Parameter


@dataclass(frozen=True)
class ResponseSpec:
    """A non-error response. `content`: media type → JSON Schema; empty for a response without body.

    `headers` are always present, `optional_headers` may be; both exclude the headers of all responses.
    """

    status: int
    description: str
    content: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    headers: tuple[str, ...] = ()
    optional_headers: tuple[str, ...] = ()
    examples: Mapping[str, Any] = field(default_factory=dict)
    """By media type."""


class Operation(Protocol):
    """An operation as the OpenAPI document needs it; implemented by `api.routing.endpoint.Endpoint`."""

    @property
    def method(self) -> str:
        """The HTTP method."""

    @property
    def path(self) -> str:
        """The path, with its placeholders."""

    @property
    def scope(self) -> str | None:
        """The scope a key needs; None if no key is required."""

    @property
    def query(self) -> tuple[Parameter, ...]:
        """The query parameters."""

    @property
    def headers(self) -> tuple[Parameter, ...]:
        """The request headers that this operation reads."""

    @property
    def body(self) -> Mapping[str, Any] | None:
        """The JSON Schema of the request body."""

    @property
    def consumes(self) -> str:
        """The media type of the request body."""

    @property
    def produces(self) -> tuple[str, ...]:
        """The media types of its responses."""

    @property
    def head(self) -> bool:
        """Whether HEAD is served too."""

    @property
    def summary(self) -> str:
        """A title of a few words that starts with a verb."""

    @property
    def description(self) -> str:
        """A description in sentences."""

    @property
    def responses(self) -> tuple[ResponseSpec, ...]:
        """The responses other than errors."""

    @property
    def error_statuses(self) -> tuple[int, ...]:
        """Error statuses besides those common to all operations of its kind."""

    @property
    def example(self) -> Any:
        """An example of the request body."""


@dataclass(frozen=True)
class PublicOperation:
    """An operation that requires no key, outside of the endpoint tables."""

    method: str
    path: str
    summary: str
    description: str
    responses: tuple[ResponseSpec, ...]
    error_statuses: tuple[int, ...] = ()
    query: tuple[Parameter, ...] = ()
    headers: tuple[Parameter, ...] = ()
    body: Mapping[str, Any] | None = None
    consumes: str = negotiation.JSON
    produces: tuple[str, ...] = (negotiation.ANY,)
    head: bool = False
    example: Any = None
    scope: None = None


def item_response(
    schema: Mapping[str, Any], example: Any, status: int = 200, description: str = ""
) -> ResponseSpec:
    """Describe a response with a single object; a 201 has a Location header."""
    shape = {
        "type": "object",
        "required": ["data"],
        "properties": {"data": schema},
        "additionalProperties": False,
    }
    return ResponseSpec(
        status,
        description or ("The created object." if status == 201 else "The object."),
        {negotiation.JSON: shape},
        headers=("Location",) if status == 201 else (),
        examples={negotiation.JSON: {"data": example}},
    )


PAGINATION: Mapping[str, Any] = {
    "title": "Pagination",
    "type": "object",
    "required": ["total", "page", "per_page", "has_more"],
    "properties": {
        "total": {"type": "integer", "minimum": 0, "description": "Items on all pages."},
        "total_capped": {
            "const": True,
            "description": "Present if not all matching items are counted: there are at least `total`.",
        },
        "page": {"type": "integer", "minimum": 1, "description": "The number of this page."},
        "per_page": {"type": "integer", "minimum": 1, "description": "Items per page at most."},
        "has_more": {"type": "boolean", "description": "Whether there is a later page."},
    },
    "additionalProperties": False,
}


def page_response(
    schema: Mapping[str, Any], example: Any, has_links: bool = True, order: str = "newest first"
) -> ResponseSpec:
    """Describe a page of a list; the Link header has the URLs of the neighboring pages."""
    shape = {
        "type": "object",
        "required": ["data", "pagination"],
        "properties": {"data": {"type": "array", "items": schema}, "pagination": PAGINATION},
        "additionalProperties": False,
    }
    pagination = {"total": 1, "page": 1, "per_page": 20, "has_more": False}
    return ResponseSpec(
        200,
        f"A page, {order}.",
        {negotiation.JSON: shape},
        headers=("Link",) if has_links else (),
        examples={negotiation.JSON: {"data": [example], "pagination": pagination}},
    )


def empty_response(description: str, status: int = 204) -> ResponseSpec:
    """Describe a response without a body."""
    return ResponseSpec(status, description)
