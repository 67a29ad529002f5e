"""Pagination of lists: query parameters, Link header and the `pagination` object. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

from api.http.query import Parameter

DEFAULT_PER_PAGE = 20
MAX_PER_PAGE = 100
MAX_PAGE = 1_000_000_000
"""Beyond it the offset overflows the integers of the database."""

PAGE_PARAMETERS = (
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
class PageRequest:
    """The requested page of a list; pages count from 1.

    `url` is that of the list without a query; `query` holds the other query parameters.
    """

    number: int
    size: int
    url: str | None = None
    query: Mapping[str, Any] = field(default_factory=dict)

    @property
    def offset(self) -> int:
        """The number of items before this page."""
        return (self.number - 1) * self.size

    def links(self, total: int) -> str | None:
        """Return the value of the Link header; None for a list without a URL.

        Beyond the last page, `prev` links to the last page.
        """
        if self.url is None:
            return None
        last = max(1, -(-total // self.size))
        pages = {"first": 1, "prev": min(self.number - 1, last), "next": self.number + 1, "last": last}
        if self.number <= 1:
            del pages["prev"]
        if self.number >= last:
            del pages["next"]
        return ", ".join(f'<{self._page_url(number)}>; rel="{name}"' for name, number in pages.items())

    def _page_url(self, number: int) -> str:
        filters = {name: value for name, value in self.query.items() if value is not None}
        query = urlencode({**filters, "page": number, "per_page": self.size})
        return f"{self.url}?{query}"


def envelope(data: Sequence[Any], total: int, page: PageRequest, capped: bool = False) -> dict[str, Any]:
    """Return the response body of a list. `capped`: at least `total` items match."""
    return {
        "data": list(data),
        "pagination": {
            "total": total,
            **({"total_capped": True} if capped else {}),
            "page": page.number,
            "per_page": page.size,
            "has_more": page.offset + len(data) < total,
        },
    }
