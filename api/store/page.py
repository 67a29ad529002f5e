"""A page of a list and the count of the whole, as every list of the facade is answered."""

from dataclasses import dataclass
from typing import Generic, TypeVar

Row = TypeVar("Row")


@dataclass(frozen=True)
class Page(Generic[Row]):
    """The rows of one page, newest first; `total` counts all that match, read in the same transaction."""

    items: tuple[Row, ...]
    total: int
