"""Nesting depth of JSON values. Pure. Called wherever JSON from users and crews is accepted.

JSON encoding and decoding recurse, each from another stack depth; stored values must stay far below the depth
where the first of them fails.
"""

from typing import Any

MAX_STORED_DEPTH = 200
"""Maximum levels of lists and objects in stored values."""


def too_deep(value: Any, max_depth: int = MAX_STORED_DEPTH) -> bool:
    """Return whether lists and objects are nested in more than `max_depth` levels."""
    level = [value]
    for _ in range(max_depth + 1):
        next_level: list[Any] = []
        for container in level:
            if isinstance(container, dict):
                next_level.extend(item for item in container.values() if isinstance(item, (dict, list)))
            elif isinstance(container, list):
                next_level.extend(item for item in container if isinstance(item, (dict, list)))
        if not next_level:
            return False
        level = next_level
    return True
