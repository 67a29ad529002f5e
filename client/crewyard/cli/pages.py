"""Going through the pages of a list. Called by the commands that list."""

from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from crewyard.call import Page

T = TypeVar("T")
PER_PAGE = 100


def items(read: Callable[[int, int], Page[T]], limit: int | None) -> Iterator[Any]:
    """The first `limit` items (None: all), read page by page as they are needed, each once.

    What is made meanwhile moves the rest on to the next page, where the last ones are met again.
    """
    given, number, seen = 0, 1, set()
    while limit is None or given < limit:
        page = read(number, PER_PAGE if limit is None else min(PER_PAGE, limit))
        item: Any
        for item in page.items:
            if limit is not None and given >= limit:
                return
            known = item.get("id", item.get("name"))
            if known in seen:
                continue
            seen.add(known)
            yield item
            given += 1
        if not page.has_more:
            return
        number += 1
