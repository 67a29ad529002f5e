"""Bytes by key: artifacts and uploads, in a directory or a bucket, through the object-store library.

Called by the pods' routes, the routes of uploads and artifacts. A key is a
relative path made by us, never a name a client gave.
"""

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from urllib.parse import urlsplit

import obstore
from obstore.exceptions import BaseError
from obstore.store import LocalStore, ObjectStore, from_url

from api.store.errors import Missing, StoreUnavailable
from api.store.passage import Check, moving
from api.store.staged import remove_staged

PART = 1024 * 1024
BUCKET_PART = 8 * 1024 * 1024
"""S3 takes no smaller part than 5 MiB, but the last."""
READ = 256 * 1024
CONNECT = timedelta(seconds=2)
PART_TIME = timedelta(seconds=10)
"""For one request that writes or deletes."""
RETRIES = 2
RETRY_TIME = timedelta(seconds=3)
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
SCHEMES = ("s3", "gs", "az")


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
    a moment, in a thread, to delete what was begun and not written to since then.
    """

    def __init__(
        self,
        writing: ObjectStore,
        reading: ObjectStore,
        part: int,
        durable: Callable[[str], None] | None = None,
        tidy: Callable[[datetime], int] | None = None,
    ) -> None:
        self._writing = writing
        self._reading = reading
        self._part = part
        self._durable = durable
        self._tidy = tidy

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
            raise StoreUnavailable(f"the object store cannot keep it: {_first_line(error)}") from error
        return Stored(check.seen, check.digest)

    async def read(self, key: str, start: int = 0, end: int | None = None) -> AsyncIterator[bytes]:
        """The bytes from `start` up to, not including, `end`, in chunks. Raises Missing."""
        if end is not None and end <= start:
            return
        try:
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
        except FileNotFoundError as error:
            raise Missing("the stored bytes are gone") from error
        except (BaseError, OSError) as error:
            raise StoreUnavailable(f"the object store cannot answer: {_first_line(error)}") from error

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
            raise StoreUnavailable(f"the object store cannot list: {_first_line(error)}") from error

    async def tidy(self, before: datetime) -> int:
        """Deletes what a killed process left of blobs that never became whole; gives how many.

        A bucket does that by itself, by a rule of its own.
        """
        if self._tidy is None:
            return 0
        try:
            return await asyncio.to_thread(self._tidy, before)
        except OSError as error:
            raise StoreUnavailable(f"the object store cannot be tidied: {_first_line(error)}") from error

    async def size(self, key: str) -> int:
        """How many bytes are stored. Raises Missing."""
        try:
            async with asyncio.timeout(FIRST_SECONDS):
                return int((await obstore.head_async(self._reading, key))["size"])
        except FileNotFoundError as error:
            raise Missing("the bytes are not there") from error
        except (BaseError, OSError) as error:
            raise StoreUnavailable(f"the object store cannot answer: {_first_line(error)}") from error

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
            raise StoreUnavailable(f"the object store cannot copy: {_first_line(error)}") from error

    async def delete(self, key: str) -> None:
        """Removes a blob; no error where it is gone."""
        try:
            async with asyncio.timeout(FIRST_SECONDS):
                await obstore.delete_async(self._writing, key)
        except FileNotFoundError:
            return
        except (BaseError, OSError) as error:
            raise StoreUnavailable(f"the object store cannot delete: {_first_line(error)}") from error


def in_folder(directory: Path) -> Blobs:
    """Blobs as files below a directory."""
    store = LocalStore(directory, mkdir=True, automatic_cleanup=True)

    def sync(key: str) -> None:
        # The library renames without flushing: bytes and names must be on disk before we say so.
        path = directory / key
        for place in (path, *list(path.parents)[: key.count("/") + 1]):
            descriptor = os.open(place, os.O_RDONLY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)

    return Blobs(store, store, PART, sync, lambda before: remove_staged(directory, before))


def in_bucket(url: str) -> Blobs:
    """Blobs as objects below `s3://bucket/prefix` (or `gs://`, `az://`).

    Endpoint, region and credentials come from the usual variables of the environment (`AWS_…`). Raises
    ValueError where the URL or these are wrong; nothing is asked of the bucket yet.
    """
    check_url(url)
    # The library forgets this one variable where any other option of its client is given.
    plain = os.environ.get("AWS_ALLOW_HTTP", "").lower() in ("1", "true")
    try:
        writing, reading = (
            from_url(
                url,
                client_options={"connect_timeout": CONNECT, "timeout": whole, "allow_http": plain},
                retry_config={"max_retries": RETRIES, "retry_timeout": RETRY_TIME},
            )
            for whole in (PART_TIME, timedelta(days=1))
        )
    except BaseError as error:
        raise ValueError(f"the bucket cannot be used: {_first_line(error)}") from error
    return Blobs(writing, reading, BUCKET_PART)


def _first_line(error: Exception) -> str:
    """What the library says, without its inner state."""
    return (str(error).splitlines() or [error.__class__.__name__])[0]


def check_url(url: str) -> None:
    """Raises ValueError where this is no address of a bucket."""
    parts = urlsplit(url)
    if parts.scheme not in SCHEMES or not parts.netloc or parts.username or parts.query or parts.fragment:
        raise ValueError("must be s3://bucket/prefix; credentials come from AWS_ACCESS_KEY_ID and the like")
