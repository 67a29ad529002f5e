"""Cache of index reads, valid while the index does not change. Called by `api.auth.api_keys` and the claims.

The generation is that of the index (`Database.generation`); while it is unknown, nothing is cached.
"""

from collections.abc import Callable
from typing import Generic, TypeVar

CacheKey = TypeVar("CacheKey")
CacheValue = TypeVar("CacheValue")


class GenerationCache(Generic[CacheKey, CacheValue]):
    """Values read in the current generation, at most `max_entries`."""

    def __init__(self, generation: Callable[[], int | None], max_entries: int) -> None:
        self._generation = generation
        self._max_entries = max_entries
        self._cached_generation: int | None = None
        self._entries: dict[CacheKey, CacheValue] = {}

    def generation(self) -> int | None:
        """Return the current generation; take it before reading and pass it to `put`."""
        return self._generation()

    def get(self, key: CacheKey) -> CacheValue | None:
        """Return the value if nothing has changed since it was read."""
        now = self._generation()
        return self._entries.get(key) if now is not None and now == self._cached_generation else None

    def put(self, read_in: int | None, key: CacheKey, value: CacheValue) -> None:
        """Cache a value read in the generation `read_in`, if that is still the current one."""
        if read_in is None or read_in != self._generation():
            return
        if self._cached_generation != read_in or len(self._entries) >= self._max_entries:
            self._cached_generation, self._entries = read_in, {}
        self._entries[key] = value
