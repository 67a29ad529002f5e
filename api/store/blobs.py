"""Bytes by key: artifacts and uploads, in a directory through the object-store library."""

from collections.abc import AsyncIterator
from dataclasses import dataclass


@dataclass(frozen=True)
class Stored:
    """What was stored: bytes counted and hashed on the way."""

    size: int
    sha256: str


class Blobs:
    """The blobs of one namespace."""

    async def put(self, key: str, chunks: AsyncIterator[bytes], size: int, sha256: str | None) -> Stored:
        """Stores exactly `size` bytes durably. Raises TooLarge, Mismatch; then nothing is kept."""
        raise NotImplementedError

    def read(self, key: str, start: int = 0, end: int | None = None) -> AsyncIterator[bytes]:
        """The bytes from `start` up to, not including, `end`, in chunks. Raises Missing."""
        raise NotImplementedError

    async def delete(self, key: str) -> None:
        """Removes a blob; no error where it is gone."""
        raise NotImplementedError
