"""One call of the API as a value: what to send, and what to make of the answer. Sent by both clients."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

T = TypeVar("T")


@dataclass(frozen=True)
class Call(Generic[T]):
    """`read` makes the result of the answer's JSON; `repeatable` calls may be sent twice without harm."""

    method: str
    path: str
    read: Callable[[Any], T]
    query: Mapping[str, str] = field(default_factory=dict)
    body: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)
    repeatable: bool = True


@dataclass(frozen=True)
class Page(Generic[T]):
    """One page of a list."""

    items: list[T]
    total: int
    page: int
    per_page: int
    has_more: bool


def data(answer: Any) -> Any:
    """What is under `data`."""
    return answer["data"]


def page(answer: Any) -> Page[Any]:
    """A list with its place among all."""
    told = answer["pagination"]
    return Page(answer["data"], told["total"], told["page"], told["per_page"], told["has_more"])


def nothing(_answer: Any) -> None:
    """An answer without content."""
