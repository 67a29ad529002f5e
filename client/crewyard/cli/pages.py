"""Pagination of lists. Called by the list commands."""

from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from crewyard.call import Page

T = TypeVar("T")
PER_PAGE = 100


def items(read: Callable[[int, int], Page[T]], limit: int | None) -> Iterator[Any]:
    """Yield the first `limit` items (None: all), each once, reading pages as needed.

    Items created meanwhile shift the list, so a page may repeat items of the previous one.
    """
    count, number, seen = 0, 1, set()
    while limit is None or count < limit:
        page = read(number, PER_PAGE if limit is None else min(PER_PAGE, limit))
        item: Any
        for item in page.items:
            if limit is not None and count >= limit:
                return
            identity = item.get("id", item.get("name", item.get("number")))
            if identity in seen:
                continue
            seen.add(identity)
            yield item
            count += 1
        if not page.has_more:
            return
        number += 1
