"""Pages of lists: the two parameters, and the object that goes with the data. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from api.parameters import Parameter

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
    """Which part of a list is asked for; pages count from 1."""

    number: int
    size: int

    @property
    def offset(self) -> int:
        """How many items come before it."""
        return (self.number - 1) * self.size


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
