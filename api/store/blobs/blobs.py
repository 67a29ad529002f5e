"""Bytes by key: artifacts and uploads, in a directory or a bucket, through the object-store library.

Called by the pods' routes and by the routes of uploads and artifacts. A key is a relative path that the
server makes, never a name from a client.
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
from api.store.blobs.verified_stream import VerifiedStream, wait_for_transfer
from api.store.errors import Missing, StoreUnavailable

READ_CHUNK_BYTES = 256 * 1024
FIRST_BYTE_TIMEOUT_SECONDS = 4.0
"""Limit until the first byte of a response."""
MIN_BYTES_PER_SECOND = 1024 * 1024
"""The slowest write rate that is accepted; a slower store counts as unavailable."""
NEXT_BYTES_TIMEOUT_SECONDS = 20.0
"""Limit until the next bytes; a whole response takes as long as its reader."""
MAX_PARALLEL_PARTS = 2
"""Parts sent in parallel."""
BLOBS_PER_PAGE = 1000
"""Blobs per page of a listing."""


@dataclass(frozen=True)
class StoredBlob:
    """Size and hash of a stored blob, computed from the bytes as they were sent."""

    size: int
    sha256: str


@dataclass(frozen=True)
class ListedBlob:
    """An existing blob."""

    key: str
    size: int
    modified: datetime


class Blobs:
    """The blobs of one installation; the namespace is the first part of every key.

    The server calls `sync` in a thread with each written key before it acknowledges the write, and
    `delete_stale_parts` in a thread with a time, to delete partial files not written since then.
    `directory` is set if the blobs are files.
    """

    def __init__(
        self,
        writing: ObjectStore,
        reading: ObjectStore,
        part: int,
        sync: Callable[[str], None] | None = None,
        delete_stale_parts: Callable[[datetime], int] | None = None,
        directory: Path | None = None,
    ) -> None:
        self._writing = writing
        self._reading = reading
        self._part = part
        self._sync = sync
        self._delete_stale_parts = delete_stale_parts
        self._directory = directory

    async def put(self, key: str, chunks: AsyncIterator[bytes], size: int, sha256: str | None) -> StoredBlob:
        """Store exactly `size` bytes durably. Raises TooLarge or Mismatch, then nothing is stored.

        Readers see the blob only once all bytes have arrived and were verified.
        """
        stream = VerifiedStream(chunks, size, sha256)
        try:
            if self._sync is None and size <= self._part:
                data = b"".join([chunk async for chunk in stream.verified_chunks()])
                sending = obstore.put_async(self._writing, key, data, use_multipart=False)
            else:
                sending = obstore.put_async(
                    self._writing,
                    key,
                    stream.verified_chunks(),
                    use_multipart=True,
                    chunk_size=self._part,
                    max_concurrency=MAX_PARALLEL_PARTS,
                )
            await wait_for_transfer(
                sending,
                stream,
                FIRST_BYTE_TIMEOUT_SECONDS
                + MAX_PARALLEL_PARTS * min(size, self._part) / MIN_BYTES_PER_SECOND,
            )
            if self._sync is not None:
                await asyncio.to_thread(self._sync, key)
        except (BaseError, OSError) as error:
            raise StoreUnavailable(f"the object store cannot store this: {first_line(error)}") from error
        return StoredBlob(stream.received_bytes, stream.digest)

    async def read(self, key: str, start: int = 0, end: int | None = None) -> AsyncIterator[bytes]:
        """Yield the bytes from `start` up to, not including, `end`, in chunks. Raises Missing.

        Raises StoreUnavailable after the last chunk if there are fewer.
        """
        if end is not None and end <= start:
            return
        received = 0
        try:
            async with aclosing(self._chunks(key, start, end)) as chunks:
                async for chunk in chunks:
                    received += len(chunk)
                    yield chunk
        except FileNotFoundError as error:
            raise Missing("the stored bytes are gone") from error
        except (BaseError, OSError) as error:
            raise StoreUnavailable(f"the object store cannot answer: {first_line(error)}") from error
        if end is not None and received < end - start:
            raise StoreUnavailable(f"{key} lacks {end - start - received} of its bytes")

    async def _chunks(self, key: str, start: int, end: int | None) -> AsyncGenerator[bytes, None]:
        if self._directory is not None:
            path = self._directory / key
            async with aclosing(
                file_reader.chunks(path, start, end, READ_CHUNK_BYTES, NEXT_BYTES_TIMEOUT_SECONDS)
            ) as pieces:
                async for piece in pieces:
                    yield piece
            return
        async with asyncio.timeout(FIRST_BYTE_TIMEOUT_SECONDS):
            if end is not None:
                response = await obstore.get_async(self._reading, key, options={"range": (start, end)})
            elif start:
                response = await obstore.get_async(self._reading, key, options={"range": {"offset": start}})
            else:
                response = await obstore.get_async(self._reading, key)
        chunks = aiter(response.stream(min_chunk_size=READ_CHUNK_BYTES))
        while True:
            async with asyncio.timeout(NEXT_BYTES_TIMEOUT_SECONDS):
                chunk = await anext(chunks, None)
            if chunk is None:
                return
            yield bytes(chunk)

    async def list_folder(self, folder: str) -> AsyncIterator[list[ListedBlob]]:
        """Yield all blobs below a folder, unordered, a thousand at a time."""
        try:
            chunks = aiter(obstore.list(self._reading, folder, chunk_size=BLOBS_PER_PAGE))
            while True:
                async with asyncio.timeout(NEXT_BYTES_TIMEOUT_SECONDS):
                    chunk = await anext(chunks, None)
                if chunk is None:
                    return
                yield [ListedBlob(blob["path"], blob["size"], blob["last_modified"]) for blob in chunk]
        except (BaseError, OSError) as error:
            raise StoreUnavailable(f"the object store cannot list: {first_line(error)}") from error

    async def delete_stale_parts(self, before: datetime) -> int:
        """Delete partial files that a killed process left behind; return how many.

        A bucket does this itself, by its own lifecycle rule.
        """
        if self._delete_stale_parts is None:
            return 0
        try:
            return await asyncio.to_thread(self._delete_stale_parts, before)
        except OSError as error:
            raise StoreUnavailable(
                f"the object store cannot delete stale parts: {first_line(error)}"
            ) from error

    async def size(self, key: str) -> int:
        """Return the size of a blob in bytes. Raises Missing."""
        try:
            async with asyncio.timeout(FIRST_BYTE_TIMEOUT_SECONDS):
                return int((await obstore.head_async(self._reading, key))["size"])
        except FileNotFoundError as error:
            raise Missing("the bytes are not there") from error
        except (BaseError, OSError) as error:
            raise StoreUnavailable(f"the object store cannot answer: {first_line(error)}") from error

    async def copy(self, key: str, to: str, size: int) -> None:
        """Store the same `size` bytes durably under another key, replacing its blob. Raises Missing."""
        try:
            async with asyncio.timeout(NEXT_BYTES_TIMEOUT_SECONDS + size / MIN_BYTES_PER_SECOND):
                # The bucket copies all bytes in one request, which takes longer than the write of a part.
                await obstore.copy_async(self._reading, key, to, overwrite=True)
            if self._sync is not None:
                await asyncio.to_thread(self._sync, to)
        except FileNotFoundError as error:
            raise Missing("the bytes are not there") from error
        except (BaseError, OSError) as error:
            raise StoreUnavailable(f"the object store cannot copy: {first_line(error)}") from error

    async def delete(self, key: str) -> None:
        """Delete a blob; a missing blob is not an error."""
        try:
            async with asyncio.timeout(FIRST_BYTE_TIMEOUT_SECONDS):
                await obstore.delete_async(self._writing, key)
        except FileNotFoundError:
            return
        except (BaseError, OSError) as error:
            raise StoreUnavailable(f"the object store cannot delete: {first_line(error)}") from error


def first_line(error: Exception) -> str:
    """Return the first line of the library's message, without its internal state."""
    return (str(error).splitlines() or [error.__class__.__name__])[0]
