"""Blob upload stream that counts, hashes and detects stalls. Called by `api.store.blobs.blobs`."""

import asyncio
import hashlib
import time
from collections.abc import AsyncIterator, Awaitable

from api.store.errors import Mismatch, TooLarge

PIECE_BYTES = 1024 * 1024
"""Bytes per step: each step into the object-store library costs as much as hashing 100 KiB."""
PROGRESS_CHECK_SECONDS = 0.2
"""Seconds between two checks for a stalled transfer."""


class VerifiedStream:
    """A stream that counts and hashes its bytes and aborts the transfer once they cannot match."""

    def __init__(self, chunks: AsyncIterator[bytes], size: int, sha256: str | None) -> None:
        self._chunks = chunks
        self._size = size
        self._sha256 = sha256
        self._hash = hashlib.sha256()
        self.received_bytes = 0
        self._idle_since: float | None = None

    def idle_seconds(self, now: float) -> float:
        """Return for how long the store has not moved any bytes; 0 while waiting for the client."""
        return 0.0 if self._idle_since is None else now - self._idle_since

    async def verified_chunks(self) -> AsyncIterator[bytes]:
        """Yield the bytes, in larger pieces than they arrive. Raises TooLarge, Mismatch."""
        async for piece in self._pieces():
            # Hashed in a thread, in parallel with the store's work, to keep the event loop free.
            hashed = asyncio.ensure_future(asyncio.to_thread(self._hash.update, piece))
            self._idle_since = time.monotonic()
            try:
                yield piece
            finally:
                await hashed
            self._idle_since = None
        self._idle_since = time.monotonic()
        if self.received_bytes != self._size:
            raise Mismatch(
                f"{self.received_bytes} bytes arrived, {self._size} were announced; send it again", "size"
            )
        if self._sha256 is not None and self.digest != self._sha256.lower():
            raise Mismatch(f"the sha256 of the received bytes is {self.digest}; send it again", "sha256")

    async def _pieces(self) -> AsyncIterator[bytes]:
        pending, size = [], 0
        async for chunk in self._chunks:
            self.received_bytes += len(chunk)
            if self.received_bytes > self._size:
                raise TooLarge(f"more than the announced {self._size} bytes arrived", "size")
            pending.append(chunk)
            size += len(chunk)
            if size >= PIECE_BYTES:
                yield b"".join(pending)
                pending, size = [], 0
        if pending:
            yield b"".join(pending)

    @property
    def digest(self) -> str:
        """The SHA-256 of the bytes so far, in hex."""
        return self._hash.hexdigest()


async def wait_for_transfer(sending: Awaitable[object], stream: VerifiedStream, seconds: float) -> None:
    """Wait for a transfer while it makes progress. Raises TimeoutError if the store stalls for `seconds`."""
    task = asyncio.ensure_future(sending)
    try:
        while not task.done():
            await asyncio.wait((task,), timeout=PROGRESS_CHECK_SECONDS)
            if not task.done() and stream.idle_seconds(time.monotonic()) > seconds:
                raise TimeoutError(f"the store took no bytes for {seconds:.0f} s")
        await task
    finally:
        task.cancel()
