"""One watch through a proxy: delayed events, dropped events, half-open streams.

Called by `tests.campaign.proxy.server`.
"""

import asyncio
import json
from collections.abc import AsyncIterable, Awaitable, Callable
from contextlib import suppress

from tests.campaign.proxy.call import ProxiedRequest
from tests.campaign.proxy.rule import ProxiedEvent

WAITING = 10_000
"""Maximum of delayed events in one stream."""


class WatchStream:
    """One open watch. `lateness` gives an event's seconds of delay, None to drop it."""

    def __init__(
        self,
        call: ProxiedRequest,
        lateness: Callable[[ProxiedEvent], float | None],
        write: Callable[[bytes], Awaitable[None]],
    ) -> None:
        self._call, self._lateness, self._write = call, lateness, write
        self._late: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue(WAITING)
        self.held = False
        """Half open: it says nothing any more, and does not end."""

    async def carry(self, lines: AsyncIterable[bytes]) -> None:
        """Forward events, in their order, until the apiserver ends the stream; a held one never ends."""
        telling = asyncio.create_task(self._tell())
        try:
            with suppress(ConnectionError):
                async for line in lines:
                    await self._hear(line)
            # What is late still comes, before the stream ends.
            await self._late.join()
            if self.held:
                await asyncio.Event().wait()
        finally:
            telling.cancel()

    async def _hear(self, line: bytes) -> None:
        found = json.loads(line)
        name = str((found.get("object") or {}).get("metadata", {}).get("name") or "")
        late = self._lateness(ProxiedEvent(self._call, found["type"], name, line))
        if late is not None:
            await self._late.put((asyncio.get_running_loop().time() + late, line))

    async def _tell(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            due, line = await self._late.get()
            if due > loop.time():
                await asyncio.sleep(due - loop.time())
            if not self.held:
                with suppress(ConnectionError):
                    await self._write(line)
            self._late.task_done()
