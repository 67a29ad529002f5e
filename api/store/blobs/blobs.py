"""Bytes by key: artifacts and uploads, in a directory or a bucket, through the object-store library.

Called by the pods' routes, the routes of uploads and artifacts. A key is a
relative path made by us, never a name a client gave.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import obstore
from obstore.exceptions import BaseError
from obstore.store import ObjectStore

from api.store.blobs import file_reader
from api.store.blobs.verified_stream import Check, moving
from api.store.errors import Missing, StoreUnavailable

READ = 256 * 1024
FIRST_SECONDS = 4.0
"""Until the first byte of an answer."""
SLOWEST = 1024 * 1024
"""Bytes a second that a store takes at least; one that is slower cannot answer."""
NEXT_SECONDS = 20.0
"""Until the next bytes; a whole answer takes as long as its reader."""
TOGETHER = 2
"""Parts that are sent at once."""
LISTED = 1000
"""Blobs told of at once."""


@dataclass(frozen=True)
class Stored:
    """What was stored: bytes counted and hashed on the way."""

    size: int
    sha256: str


@dataclass(frozen=True)
class Listed:
    """A blob that is there."""

    key: str
    size: int
    modified: datetime


class Blobs:
    """The blobs of one installation; the namespace is the first part of every key.

    `durable` is called with the key of what was written, in a thread, before it is acknowledged, `tidy` with
    a moment, in a thread, to delete what was begun and not written to since then. `directory` is where the
    blobs are files.
    """

    def __init__(
        self,
        writing: ObjectStore,
        reading: ObjectStore,
        part: int,
        durable: Callable[[str], None] | None = None,
        tidy: Callable[[datetime], int] | None = None,
        directory: Path | None = None,
    ) -> None:
        self._writing = writing
        self._reading = reading
        self._part = part
        self._durable = durable
        self._tidy = tidy
        self._directory = directory

    async def put(self, key: str, chunks: AsyncIterator[bytes], size: int, sha256: str | None) -> Stored:
        """Stores exactly `size` bytes durably. Raises TooLarge, Mismatch; then nothing is kept.

        Nobody reads a part of them: they are there once all have arrived and were found right.
        """
        check = Check(chunks, size, sha256)
        try:
            if self._durable is None and size <= self._part:
                whole = b"".join([chunk async for chunk in check.pass_on()])
                sending = obstore.put_async(self._writing, key, whole, use_multipart=False)
            else:
                sending = obstore.put_async(
                    self._writing,
                    key,
                    check.pass_on(),
                    use_multipart=True,
                    chunk_size=self._part,
                    max_concurrency=TOGETHER,
                )
            await moving(sending, check, FIRST_SECONDS + TOGETHER * min(size, self._part) / SLOWEST)
            if self._durable is not None:
                await asyncio.to_thread(self._durable, key)
        except (BaseError, OSError) as error:
            raise StoreUnavailable(f"the object store cannot keep it: {first_line(error)}") from error
        return Stored(check.seen, check.digest)

    async def read(self, key: str, start: int = 0, end: int | None = None) -> AsyncIterator[bytes]:
        """The bytes from `start` up to, not including, `end`, in chunks. Raises Missing."""
        if end is not None and end <= start:
            return
        try:
            async with aclosing(self._chunks(key, start, end)) as chunks:
                async for chunk in chunks:
                    yield chunk
        except FileNotFoundError as error:
            raise Missing("the stored bytes are gone") from error
        except (BaseError, OSError) as error:
            raise StoreUnavailable(f"the object store cannot answer: {first_line(error)}") from error

    async def _chunks(self, key: str, start: int, end: int | None) -> AsyncGenerator[bytes, None]:
        if self._directory is not None:
            path = self._directory / key
            async with aclosing(file_reader.chunks(path, start, end, READ, NEXT_SECONDS)) as pieces:
                async for piece in pieces:
                    yield piece
            return
        async with asyncio.timeout(FIRST_SECONDS):
            if end is not None:
                found = await obstore.get_async(self._reading, key, options={"range": (start, end)})
            elif start:
                found = await obstore.get_async(self._reading, key, options={"range": {"offset": start}})
            else:
                found = await obstore.get_async(self._reading, key)
        chunks = aiter(found.stream(min_chunk_size=READ))
        while True:
            async with asyncio.timeout(NEXT_SECONDS):
                chunk = await anext(chunks, None)
            if chunk is None:
                return
            yield bytes(chunk)

    async def below(self, folder: str) -> AsyncIterator[list[Listed]]:
        """All blobs below a folder, in no order, a thousand at a time."""
        try:
            chunks = aiter(obstore.list(self._reading, folder, chunk_size=LISTED))
            while True:
                async with asyncio.timeout(NEXT_SECONDS):
                    chunk = await anext(chunks, None)
                if chunk is None:
                    return
                yield [Listed(found["path"], found["size"], found["last_modified"]) for found in chunk]
        except (BaseError, OSError) as error:
            raise StoreUnavailable(f"the object store cannot list: {first_line(error)}") from error

    async def tidy(self, before: datetime) -> int:
        """Deletes what a killed process left of blobs that never became whole; gives how many.

        A bucket does that by itself, by a rule of its own.
        """
        if self._tidy is None:
            return 0
        try:
            return await asyncio.to_thread(self._tidy, before)
        except OSError as error:
            raise StoreUnavailable(f"the object store cannot be tidied: {first_line(error)}") from error

    async def size(self, key: str) -> int:
        """How many bytes are stored. Raises Missing."""
        try:
            async with asyncio.timeout(FIRST_SECONDS):
                return int((await obstore.head_async(self._reading, key))["size"])
        except FileNotFoundError as error:
            raise Missing("the bytes are not there") from error
        except (BaseError, OSError) as error:
            raise StoreUnavailable(f"the object store cannot answer: {first_line(error)}") from error

    async def copy(self, key: str, to: str) -> None:
        """Stores the same bytes under another key, durably, replacing what is there. Raises Missing."""
        try:
            async with asyncio.timeout(NEXT_SECONDS):
                await obstore.copy_async(self._writing, key, to, overwrite=True)
            if self._durable is not None:
                await asyncio.to_thread(self._durable, to)
        except FileNotFoundError as error:
            raise Missing("the bytes are not there") from error
        except (BaseError, OSError) as error:
            raise StoreUnavailable(f"the object store cannot copy: {first_line(error)}") from error

    async def delete(self, key: str) -> None:
        """Removes a blob; no error where it is gone."""
        try:
            async with asyncio.timeout(FIRST_SECONDS):
                await obstore.delete_async(self._writing, key)
        except FileNotFoundError:
            return
        except (BaseError, OSError) as error:
            raise StoreUnavailable(f"the object store cannot delete: {first_line(error)}") from error


def first_line(error: Exception) -> str:
    """What the library says, without its inner state."""
    return (str(error).splitlines() or [error.__class__.__name__])[0]
