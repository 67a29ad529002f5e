"""Reads the body of a delivery: hashes it as it arrives and buffers it up to a limit.

The sender is authenticated only at the end of the body, so the buffer, the time and the number
of concurrent reads are small. Called by `api.webhooks.routes`.
"""

import asyncio
import hashlib
import hmac
from dataclasses import dataclass

from aiohttp import web

from api import errors
from api.http import expect_continue

MAX_BODY_BYTES = 25 * 1024 * 1024
"""Maximum size of a body; also the maximum of GitHub."""
MAX_PARSED_BYTES = 1024 * 1024
"""Maximum size of a parsed body; a larger one counts as a push hint without content."""
BODY_TIMEOUT_SECONDS = 10.0
"""Deadline for a whole body; git hosts themselves time out then."""
MAX_LARGE_READS = 16
SMALL_BODY_BYTES = 64 * 1024
"""Size of an ordinary push. Such bodies have read slots of their own, which need little memory: slow large
bodies of unauthenticated clients cannot block them."""
MAX_SMALL_READS = 256
SLOT_TIMEOUT_SECONDS = 2.0
"""Maximum wait for a read slot."""
_CHUNK_BYTES = 64 * 1024


@dataclass(frozen=True)
class DeliveryBody:
    """The body and its hashes. `raw` None: larger than MAX_PARSED_BYTES; hashes cover the whole body."""

    raw: bytes | None
    hmac: str
    sha256: str


class DeliveryReader:
    """Reads delivery bodies with limited concurrency."""

    def __init__(self) -> None:
        self._large = asyncio.Semaphore(MAX_LARGE_READS)
        self._small = asyncio.Semaphore(MAX_SMALL_READS)

    async def read(self, request: web.Request, secret: str) -> DeliveryBody:
        """Read a body. Raises a 413, a 408 on timeout, a 503 if too many bodies are being read."""
        length = request.content_length
        if (length or 0) > MAX_BODY_BYTES:
            raise errors.too_large(MAX_BODY_BYTES, "the delivery")
        slots = self._small if length is not None and length <= SMALL_BODY_BYTES else self._large
        try:
            async with asyncio.timeout(SLOT_TIMEOUT_SECONDS):
                await slots.acquire()
        except TimeoutError as error:
            raise errors.unavailable("too many deliveries in parallel; try again shortly") from error
        try:
            async with asyncio.timeout(BODY_TIMEOUT_SECONDS):
                return await _read(request, secret)
        except TimeoutError as error:
            raise errors.HttpApiError(
                408, f"the body did not arrive within {BODY_TIMEOUT_SECONDS:.0f} s"
            ) from error
        finally:
            slots.release()


async def _read(request: web.Request, secret: str) -> DeliveryBody:
    await expect_continue.send_continue(request)
    signature = hmac.new(secret.encode(), digestmod=hashlib.sha256)
    digest, size, buffer = hashlib.sha256(), 0, bytearray()
    while chunk := await request.content.read(_CHUNK_BYTES):
        size += len(chunk)
        if size > MAX_BODY_BYTES:
            raise errors.too_large(MAX_BODY_BYTES, "the delivery")
        signature.update(chunk)
        digest.update(chunk)
        if size <= MAX_PARSED_BYTES:
            buffer += chunk
        else:
            buffer.clear()
    return DeliveryBody(
        bytes(buffer) if size <= MAX_PARSED_BYTES else None, signature.hexdigest(), digest.hexdigest()
    )
