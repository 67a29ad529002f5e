"""Bytes by key: artifacts and uploads, in a directory through the object-store library.

Called by the pods' routes, the routes of uploads and artifacts. A key is a
relative path made by us, never a name a client gave.
"""

import asyncio
import hashlib
import os
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import obstore
from obstore.exceptions import BaseError
from obstore.store import LocalStore

from api.store.errors import Mismatch, Missing, StoreUnavailable, TooLarge

PART = 1024 * 1024
READ = 256 * 1024


@dataclass(frozen=True)
class Stored:
    """What was stored: bytes counted and hashed on the way."""

    size: int
    sha256: str


class _Check:
    """Counts and hashes the bytes that pass, and stops the transfer where they cannot be right."""

    def __init__(self, chunks: AsyncIterator[bytes], size: int, sha256: str | None) -> None:
        self._chunks = chunks
        self._size = size
        self._sha256 = sha256
        self._hash = hashlib.sha256()
        self.seen = 0

    async def pass_on(self) -> AsyncIterator[bytes]:
        async for chunk in self._chunks:
            self.seen += len(chunk)
            if self.seen > self._size:
                raise TooLarge(f"more than the announced {self._size} bytes arrived", "size")
            self._hash.update(chunk)
            yield chunk
        if self.seen != self._size:
            raise Mismatch(f"{self.seen} bytes arrived, {self._size} were announced; send it again", "size")
        if self._sha256 is not None and self.digest != self._sha256.lower():
            raise Mismatch(f"the sha256 of what arrived is {self.digest}; send it again", "sha256")

    @property
    def digest(self) -> str:
        return self._hash.hexdigest()


class Blobs:
    """The blobs of one installation; the namespace is the first part of every key."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._store = LocalStore(directory, mkdir=True)

    async def put(self, key: str, chunks: AsyncIterator[bytes], size: int, sha256: str | None) -> Stored:
        """Stores exactly `size` bytes durably. Raises TooLarge, Mismatch; then nothing is kept."""
        check = _Check(chunks, size, sha256)
        try:
            await obstore.put_async(
                self._store, key, check.pass_on(), use_multipart=True, chunk_size=PART, max_concurrency=2
            )
            await asyncio.to_thread(self._sync, key)
        except (BaseError, OSError) as error:
            raise StoreUnavailable(f"the object store cannot keep it: {error}") from error
        return Stored(check.seen, check.digest)

    async def read(self, key: str, start: int = 0, end: int | None = None) -> AsyncIterator[bytes]:
        """The bytes from `start` up to, not including, `end`, in chunks. Raises Missing."""
        if end is not None and end <= start:
            return
        try:
            if end is not None:
                found = await obstore.get_async(self._store, key, options={"range": (start, end)})
            elif start:
                found = await obstore.get_async(self._store, key, options={"range": {"offset": start}})
            else:
                found = await obstore.get_async(self._store, key)
            async for chunk in found.stream(min_chunk_size=READ):
                yield bytes(chunk)
        except FileNotFoundError as error:
            raise Missing("the stored bytes are gone") from error
        except (BaseError, OSError) as error:
            raise StoreUnavailable(f"the object store cannot answer: {error}") from error

    async def delete(self, key: str) -> None:
        """Removes a blob; no error where it is gone."""
        try:
            await obstore.delete_async(self._store, key)
        except FileNotFoundError:
            return
        except (BaseError, OSError) as error:
            raise StoreUnavailable(f"the object store cannot delete: {error}") from error

    def _sync(self, key: str) -> None:
        # The library renames without flushing: bytes and names must be on disk before we say so.
        path = self._directory / key
        for place in (path, *list(path.parents)[: key.count("/") + 1]):
            descriptor = os.open(place, os.O_RDONLY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
