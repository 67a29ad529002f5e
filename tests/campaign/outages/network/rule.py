"""What a link does to connections, a class for each kind of fault. Each counts what it disturbed.

Called by `tests.campaign.outages.network.link` with each piece of bytes, in both directions.
"""

import asyncio
import re
from collections.abc import Callable
from typing import Literal

Direction = Literal["up", "down"]
UP: Direction = "up"
DOWN: Direction = "down"
"""Towards the server; towards the product."""
_REQUEST = re.compile(rb"(GET|HEAD|PUT|POST|PATCH|DELETE) (\S+) HTTP/1\.1\r\n")


class LinkCut(Exception):
    """The connection is broken off; `rest` is what still arrives."""

    def __init__(self, rest: bytes = b"") -> None:
        super().__init__()
        self.rest = rest


class LinkReply(Exception):
    """The product is answered so, and the server hears nothing of it."""

    def __init__(self, answer: bytes) -> None:
        super().__init__()
        self.answer = answer


class LinkConnection:
    """One connection. `method` and `path` are those of its last HTTP request, `new` in the first piece."""

    def __init__(self, peer: str) -> None:
        self.peer = peer
        self.method, self.path, self.new = "", "", False

    def heard(self, data: bytes) -> None:
        """Take note of a request that begins here: clients send none before the last one is answered."""
        found = _REQUEST.match(data)
        self.new = found is not None
        if found is not None:
            self.method, self.path = found[1].decode(), found[2].decode("latin-1")


Which = Callable[[LinkConnection], bool]


def every(_line: LinkConnection) -> bool:
    """All connections."""
    return True


class LinkRule:
    """Passes everything; others override what they disturb. `which` connections or requests are meant."""

    def __init__(self, which: Which = every) -> None:
        self.which = which
        self.injected = 0
        self.over = asyncio.Event()

    async def on_open(self, line: LinkConnection) -> None:
        """Before the server hears of a connection. Raises LinkCut."""

    async def on_request_data(self, line: LinkConnection, data: bytes) -> bytes:
        """What arrives of what the product sent. Raises LinkCut, LinkReply."""
        return data

    async def on_response_data(self, line: LinkConnection, data: bytes) -> bytes:
        """What arrives of what the server sent. Raises LinkCut."""
        return data


class SilentLink(LinkRule):
    """No bytes pass in either direction until the fault is over; then they continue."""

    async def on_request_data(self, line: LinkConnection, data: bytes) -> bytes:
        return await self._held(line, data)

    async def on_response_data(self, line: LinkConnection, data: bytes) -> bytes:
        return await self._held(line, data)

    async def _held(self, line: LinkConnection, data: bytes) -> bytes:
        if self.which(line):
            self.injected += 1
            await self.over.wait()
        return data


class SlowLink(LinkRule):
    """Each piece is late by `pause` seconds, and as many bytes a second pass as `rate` says."""

    def __init__(self, pause: float, rate: float, which: Which = every) -> None:
        super().__init__(which)
        self._pause, self._rate = pause, rate

    async def on_request_data(self, line: LinkConnection, data: bytes) -> bytes:
        return await self._late(line, data)

    async def on_response_data(self, line: LinkConnection, data: bytes) -> bytes:
        return await self._late(line, data)

    async def _late(self, line: LinkConnection, data: bytes) -> bytes:
        if self.which(line) and not self.over.is_set():
            self.injected += 1
            try:
                async with asyncio.timeout(self._pause + len(data) / self._rate):
                    await self.over.wait()
            except TimeoutError:
                pass
        return data


class CutAfterBytes(LinkRule):
    """Breaks off each connection when so many bytes have passed in one direction; `most` times in all."""

    def __init__(self, direction: Direction, size: int, which: Which = every, most: int = 0) -> None:
        super().__init__(which)
        self._direction, self._size, self._most = direction, size, most
        self._passed: dict[LinkConnection, int] = {}

    async def on_request_data(self, line: LinkConnection, data: bytes) -> bytes:
        return self._counted(line, data) if self._direction == UP else data

    async def on_response_data(self, line: LinkConnection, data: bytes) -> bytes:
        return self._counted(line, data) if self._direction == DOWN else data

    def _counted(self, line: LinkConnection, data: bytes) -> bytes:
        if not self.which(line) or (self._most and self.injected >= self._most):
            return data
        left = self._size - self._passed.get(line, 0)
        if len(data) < left:
            self._passed[line] = self._passed.get(line, 0) + len(data)
            return data
        self.injected += 1
        self._passed.pop(line, None)
        raise LinkCut(data[:left])


class GarbageBytes(LinkRule):
    """Responds to every request with garbage."""

    ANSWER = b"\x00\xff\x15nobody speaks so\r\n\r\n" * 8

    async def on_request_data(self, line: LinkConnection, data: bytes) -> bytes:
        if self.which(line):
            self.injected += 1
            raise LinkReply(self.ANSWER)
        return data


class FixedResponse(LinkRule):
    """Answers HTTP requests in place of the server: status, headers and body; `most` of them, or all."""

    def __init__(
        self, status: int, body: str = "", headers: str = "", which: Which = every, most: int = 0
    ) -> None:
        super().__init__(which)
        raw = body.encode()
        head = f"HTTP/1.1 {status} Failure\r\nContent-Length: {len(raw)}\r\nConnection: close\r\n{headers}"
        self._status, self._most = head.encode() + b"\r\n", most
        self._body = raw

    async def on_request_data(self, line: LinkConnection, data: bytes) -> bytes:
        if line.new and self.which(line) and not (self._most and self.injected >= self._most):
            self.injected += 1
            raise LinkReply(self._status + (b"" if line.method == "HEAD" else self._body))
        return data


class HungRequests(LinkRule):
    """Hangs up on all that is sent to the server."""

    async def on_request_data(self, line: LinkConnection, data: bytes) -> bytes:
        if self.which(line):
            self.injected += 1
            raise LinkCut
        return data
