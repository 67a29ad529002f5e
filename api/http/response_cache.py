"""Cache of responses, valid while no row of the store has changed.

The generation is `Database.generation`: the first change of any row invalidates all
responses, so the cache never serves stale data. Called by `api.routing.endpoint` for
endpoints that read nothing but rows.
"""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass

MAX_RESPONSES = 512
"""Responses per operation; a page of 100 runs has 25 KB."""
MAX_BODY_BYTES = 64 * 1024


@dataclass(frozen=True)
class CachedResponse:
    """A response without the parts that belong to one request."""

    body: bytes
    headers: Mapping[str, str]


class ResponseCache:
    """Cached responses of one operation in the current generation."""

    def __init__(self) -> None:
        self._generation: int | None = None
        self._responses: dict[Hashable, CachedResponse] = {}

    def get(self, generation: int | None, key: Hashable) -> CachedResponse | None:
        """Return the response cached for this key in this generation, or None."""
        return self._responses.get(key) if generation == self._generation else None

    def put(self, before: int | None, after: int | None, key: Hashable, response: CachedResponse) -> None:
        """Cache a response computed between the generations `before` and `after`, if they are equal."""
        if before is None or before != after or len(response.body) > MAX_BODY_BYTES:
            return
        if self._generation != before or len(self._responses) >= MAX_RESPONSES:
            self._generation, self._responses = before, {}
        self._responses[key] = response
