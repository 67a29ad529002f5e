"""Pages of lists: the two parameters, and the object that goes with the data. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

from api.http.query import Parameter

DEFAULT_PER_PAGE = 20
MAX_PER_PAGE = 100
MAX_PAGE = 1_000_000_000
"""Beyond it an offset would leave the range of the database's integers."""

PARAMETERS = (
    Parameter(
        "page", {"type": "integer", "minimum": 1, "maximum": MAX_PAGE}, default=1, description="Page number."
    ),
    Parameter(
        "per_page",
        {"type": "integer", "minimum": 1, "maximum": MAX_PER_PAGE},
        default=DEFAULT_PER_PAGE,
        description="Items per page.",
    ),
)


@dataclass(frozen=True)
class Page:
    """Which part of a list is asked for; pages count from 1.

    `address` is the list's own, without a query; `query` what it was asked for besides the page.
    """

    number: int
    size: int
    address: str | None = None
    query: Mapping[str, Any] = field(default_factory=dict)

    @property
    def offset(self) -> int:
        """How many items come before it."""
        return (self.number - 1) * self.size

    def links(self, total: int) -> str | None:
        """The value of the header Link; None for a list without an address.

        Beyond the last page `prev` leads back to it.
        """
        if self.address is None:
            return None
        last = max(1, -(-total // self.size))
        pages = {"first": 1, "prev": min(self.number - 1, last), "next": self.number + 1, "last": last}
        if self.number <= 1:
            del pages["prev"]
        if self.number >= last:
            del pages["next"]
        return ", ".join(f'<{self._address(number)}>; rel="{name}"' for name, number in pages.items())

    def _address(self, number: int) -> str:
        given = {name: value for name, value in self.query.items() if value is not None}
        query = urlencode({**given, "page": number, "per_page": self.size})
        return f"{self.address}?{query}"


def envelope(data: Sequence[Any], total: int, page: Page) -> dict[str, Any]:
    """The body of a list's answer."""
    return {
        "data": list(data),
        "pagination": {
            "total": total,
            "page": page.number,
            "per_page": page.size,
            "has_more": page.offset + len(data) < total,
        },
    }
