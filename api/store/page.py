"""A page of rows with the total count; every list of the API returns one."""

from dataclasses import dataclass
from typing import Generic, TypeVar

Row = TypeVar("Row")


@dataclass(frozen=True)
class RowPage(Generic[Row]):
    """The rows of one page, newest first; `total` counts all that match, read in the same transaction."""

    items: tuple[Row, ...]
    total: int
    capped: bool = False
    """Whether more may match than `total` says; enough are counted to know whether another page follows."""
