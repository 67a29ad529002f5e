"""A delivery's body: hashed as it arrives, and kept only as far as it may be read.

Who sends it is known only at its end, so that little is kept of it, for a short
time, and for few at once. Called by `api.webhooks.routes`.
"""

import asyncio
import hashlib
import hmac
from dataclasses import dataclass

from aiohttp import web

from api import errors
from api.http import expect_continue

MOST = 25 * 1024 * 1024
"""Bytes of a body; GitHub sends no larger one."""
KEPT = 1024 * 1024
"""Bytes that are kept; a larger body is a hint that is not read."""
SECONDS = 10.0
"""For a whole body; the hosts themselves give up then."""
AT_ONCE = 16
SMALL = 64 * 1024
"""Bytes of an ordinary push. Such bodies have places of their own, which cost little memory: who sends large
ones slowly, without a signature so far, keeps none of them out."""
SMALL_AT_ONCE = 256
PATIENCE = 2.0
"""Seconds until one of the places for reading must be free."""
_CHUNK = 64 * 1024


@dataclass(frozen=True)
class Body:
    """`raw` is the body, or None where it is too large to be kept; the rest is of the whole."""

    raw: bytes | None
    hmac: str
    sha256: str


class Reader:
    """Reads bodies, a few at a time."""

    def __init__(self) -> None:
        self._large = asyncio.Semaphore(AT_ONCE)
        self._small = asyncio.Semaphore(SMALL_AT_ONCE)

    async def read(self, request: web.Request, secret: str) -> Body:
        """The body. Raises 413, 408 where it does not come, 503 where too many are being read."""
        length = request.content_length
        if (length or 0) > MOST:
            raise errors.too_large(MOST, "the delivery")
        places = self._small if length is not None and length <= SMALL else self._large
        try:
            async with asyncio.timeout(PATIENCE):
                await places.acquire()
        except TimeoutError as error:
            raise errors.unavailable("too many deliveries at once; try again shortly") from error
        try:
            async with asyncio.timeout(SECONDS):
                return await _read(request, secret)
        except TimeoutError as error:
            raise errors.ApiError(408, f"the body did not come within {SECONDS:.0f} s") from error
        finally:
            places.release()


async def _read(request: web.Request, secret: str) -> Body:
    await expect_continue.ask(request)
    signature = hmac.new(secret.encode(), digestmod=hashlib.sha256)
    digest, size, kept = hashlib.sha256(), 0, bytearray()
    while chunk := await request.content.read(_CHUNK):
        size += len(chunk)
        if size > MOST:
            raise errors.too_large(MOST, "the delivery")
        signature.update(chunk)
        digest.update(chunk)
        if size <= KEPT:
            kept += chunk
        else:
            kept.clear()
    return Body(bytes(kept) if size <= KEPT else None, signature.hexdigest(), digest.hexdigest())
