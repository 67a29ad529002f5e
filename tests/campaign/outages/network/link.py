"""A proxy between the product and a real server, which does by rules what networks and broken servers do.

    async with open_link("127.0.0.1", server.port) as link:
        process = start(AWS_ENDPOINT_URL=f"http://127.0.0.1:{link.port}")
        async with link.fault(CutAfterBytes(UP, 100_000)):
            ...

It knows bytes, and of HTTP just where a request begins. Called by the tests of outages.
"""

import asyncio
import contextlib
import socket
import struct
from collections.abc import AsyncIterator

from tests.campaign.outages.network.rule import LinkConnection, LinkCut, LinkReply, LinkRule

CHUNK = 64 * 1024
LAST_SECONDS = 2.0
"""For the rest of a request that was answered before its end."""
_RESET = struct.pack("ii", 1, 0)


class _ReplySent(Exception):
    """The rule has answered; there is nothing more to say."""


class Link:
    """Listens, and passes on to a server. `injected` counts what was disturbed."""

    def __init__(self, host: str, port: int, address: str = "127.0.0.1") -> None:
        self.address, self.port = address, 0
        self.rules: list[LinkRule] = []
        self._far = (host, port)
        self._past = 0
        self._lines: dict[LinkConnection, asyncio.StreamWriter] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._listening: asyncio.Server | None = None

    async def listen(self) -> None:
        """Listen, at the same port after `stop_listening`. Raises OSError if the port is taken."""
        self._listening = await asyncio.start_server(self._accepted, self.address, self.port, limit=CHUNK)
        self.port = int(self._listening.sockets[0].getsockname()[1])

    def stop_listening(self) -> None:
        """Listen no more and breaks off what is open: connections are refused."""
        if self._listening is not None:
            self._listening.close()
            self._listening = None
        self.hang_up()

    def hang_up(self) -> int:
        """Break off all connections that are open; return how many."""
        for writer in self._lines.values():
            _reset(writer)
        return len(self._lines)

    async def close(self) -> None:
        """End all of it."""
        for rule in self.rules:
            rule.over.set()
        self.stop_listening()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    @property
    def injected(self) -> int:
        """How often something was disturbed so far."""
        return self._past + sum(rule.injected for rule in self.rules)

    @contextlib.asynccontextmanager
    async def fault(self, rule: LinkRule) -> AsyncIterator[LinkRule]:
        """The rule holds while the block is open, for connections that are there already, too."""
        self.rules.append(rule)
        try:
            yield rule
        finally:
            self.rules.remove(rule)
            rule.over.set()
            self._past += rule.injected

    @contextlib.asynccontextmanager
    async def refusing(self) -> AsyncIterator[LinkRule]:
        """Nothing listens while the block is open. The rule counts one."""
        rule = LinkRule()
        rule.injected = 1
        self.stop_listening()
        try:
            yield rule
        finally:
            await self.listen()
            self._past += 1

    def _accepted(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.get_running_loop().create_task(self._serve(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        line = LinkConnection(str(writer.get_extra_info("peername")[0]))
        self._lines[line] = writer
        far: asyncio.StreamWriter | None = None
        try:
            for rule in list(self.rules):
                await rule.on_open(line)
            answers, far = await asyncio.open_connection(*self._far, limit=CHUNK)
            asking = asyncio.create_task(self._up(line, reader, writer, far))
            telling = asyncio.create_task(self._down(line, answers, writer))
            try:
                await asyncio.gather(asking, telling)
            finally:
                asking.cancel()
                telling.cancel()
        except _ReplySent:
            pass
        except (LinkCut, OSError):
            _reset(writer)
        finally:
            del self._lines[line]
            for one in (writer, far):
                if one is not None:
                    one.close()

    async def _up(
        self,
        line: LinkConnection,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        far: asyncio.StreamWriter,
    ) -> None:
        while data := await reader.read(CHUNK):
            line.heard(data)
            try:
                for rule in list(self.rules):
                    data = await rule.on_request_data(line, data)
            except LinkCut as cut:
                far.write(cut.rest)
                raise
            except LinkReply as instead:
                await _answered(reader, writer, instead.answer)
                raise _ReplySent from None
            far.write(data)
            await far.drain()
        if far.can_write_eof():
            far.write_eof()

    async def _down(
        self, line: LinkConnection, answers: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        while data := await answers.read(CHUNK):
            try:
                for rule in list(self.rules):
                    data = await rule.on_response_data(line, data)
            except LinkCut as cut:
                writer.write(cut.rest)
                await writer.drain()
                raise
            writer.write(data)
            await writer.drain()
        # The server has closed: close towards the client too, even if it still sends.
        writer.close()


async def _answered(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, answer: bytes) -> None:
    writer.write(answer)
    await writer.drain()
    if writer.can_write_eof():
        writer.write_eof()
    # A reset now could overtake the answer.
    with contextlib.suppress(TimeoutError, OSError):
        async with asyncio.timeout(LAST_SECONDS):
            while await reader.read(CHUNK):
                pass


def _reset(writer: asyncio.StreamWriter) -> None:
    """Break off as a machine that crashed: no orderly end that could be taken for the whole."""
    found = writer.get_extra_info("socket")
    if found is not None:
        with contextlib.suppress(OSError):
            found.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
    writer.transport.abort()


@contextlib.asynccontextmanager
async def open_link(host: str, port: int, address: str = "127.0.0.1") -> AsyncIterator[Link]:
    """A link before a server, listening on `address`, while the block is open."""
    made = Link(host, port, address)
    await made.listen()
    try:
        yield made
    finally:
        await made.close()
