"""Bytes on their way into the store of blobs: counted, hashed, seen to move. Called by `api.store.blobs.blobs`."""

import asyncio
import hashlib
import time
from collections.abc import AsyncIterator, Awaitable

from api.store.errors import Mismatch, TooLarge

PIECE = 1024 * 1024
"""What is handed on at once: each step into the object-store library costs as much as hashing 100 KiB."""
LOOK = 0.2
"""Seconds between two looks whether a transfer moves."""


class Check:
    """Counts and hashes the bytes that pass, and stops the transfer where they cannot be right."""

    def __init__(self, chunks: AsyncIterator[bytes], size: int, sha256: str | None) -> None:
        self._chunks = chunks
        self._size = size
        self._sha256 = sha256
        self._hash = hashlib.sha256()
        self.seen = 0
        self._moved: float | None = None

    def idle(self, now: float) -> float:
        """For how long the store has neither asked for more nor been given any; 0 while we wait for bytes."""
        return 0.0 if self._moved is None else now - self._moved

    async def pass_on(self) -> AsyncIterator[bytes]:
        """The bytes, in larger pieces than they come. Raises TooLarge, Mismatch."""
        async for piece in self._pieces():
            # Beside the store's work, and not in the way of other requests.
            hashed = asyncio.ensure_future(asyncio.to_thread(self._hash.update, piece))
            self._moved = time.monotonic()
            try:
                yield piece
            finally:
                await hashed
            self._moved = None
        self._moved = time.monotonic()
        if self.seen != self._size:
            raise Mismatch(f"{self.seen} bytes arrived, {self._size} were announced; send it again", "size")
        if self._sha256 is not None and self.digest != self._sha256.lower():
            raise Mismatch(f"the sha256 of what arrived is {self.digest}; send it again", "sha256")

    async def _pieces(self) -> AsyncIterator[bytes]:
        waiting, held = [], 0
        async for chunk in self._chunks:
            self.seen += len(chunk)
            if self.seen > self._size:
                raise TooLarge(f"more than the announced {self._size} bytes arrived", "size")
            waiting.append(chunk)
            held += len(chunk)
            if held >= PIECE:
                yield b"".join(waiting)
                waiting, held = [], 0
        if waiting:
            yield b"".join(waiting)

    @property
    def digest(self) -> str:
        """The SHA-256 of what has passed, in hex."""
        return self._hash.hexdigest()


async def moving(sending: Awaitable[object], check: Check, seconds: float) -> None:
    """Waits for a transfer as long as it moves. Raises TimeoutError where the store stands for `seconds`."""
    task = asyncio.ensure_future(sending)
    try:
        while not task.done():
            await asyncio.wait((task,), timeout=LOOK)
            if not task.done() and check.idle(time.monotonic()) > seconds:
                raise TimeoutError(f"nothing was taken for {seconds:.0f} s")
        await task
    finally:
        task.cancel()
