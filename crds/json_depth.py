"""How deeply a JSON value is nested. Pure. Called wherever what users and crews made is taken in.

Reading and writing JSON recurses, each place from another depth of its own: what is kept must be far from
where the first of them fails.
"""

from typing import Any

DEEPEST = 200
"""Levels of lists and objects in what is kept."""


def too_deep(value: Any, most: int = DEEPEST) -> bool:
    """Whether lists and objects are nested in more than `most` levels."""
    level = [value]
    for _ in range(most + 1):
        below: list[Any] = []
        for one in level:
            if isinstance(one, dict):
                below.extend(item for item in one.values() if isinstance(item, (dict, list)))
            elif isinstance(one, list):
                below.extend(item for item in one if isinstance(item, (dict, list)))
        if not below:
            return False
        level = below
    return True
