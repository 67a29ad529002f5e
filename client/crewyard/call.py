"""One API call as a value: the request, and how to read the response. Sent by both clients."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

T = TypeVar("T")


@dataclass(frozen=True)
class Call(Generic[T]):
    """A request. `read` converts the response JSON to the result; `repeatable` calls are idempotent."""

    method: str
    path: str
    read: Callable[[Any], T]
    query: Mapping[str, str] = field(default_factory=dict)
    body: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)
    repeatable: bool = True
    wait_seconds: int = 0
    """How long the service may hold the response back."""


@dataclass(frozen=True)
class Page(Generic[T]):
    """One page of a list."""

    items: list[T]
    total: int
    page: int
    per_page: int
    has_more: bool
    total_capped: bool = False
    """Whether not all matching items are counted: there are at least `total`."""


def data(response: Any) -> Any:
    """Return the `data` field of a response."""
    return response["data"]


def page(response: Any) -> Page[Any]:
    """Return a list response as a Page."""
    pagination = response["pagination"]
    return Page(
        response["data"],
        pagination["total"],
        pagination["page"],
        pagination["per_page"],
        pagination["has_more"],
        pagination.get("total_capped", False),
    )


def nothing(_response: Any) -> None:
    """Read a response without content."""
