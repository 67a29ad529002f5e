"""Clients that follow runs' events over as many streams as it takes, as browsers would.

Called by `tests.campaign.campaign`, which compares what they read with what the API tells later.
"""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator

import aiohttp

from crds.names import id_of
from tests.campaign.checks.checker import EVENTS, Violation
from tests.campaign.checks.observed import ObservedEvent, StreamRead
from tests.campaign.testbed import CampaignTestbed

PAUSE = 0.5
NONE_YET = (404, 500, 502, 503, 429)
"""Answers after which a client tries again: the run may not be in the rows yet, the api may be on its way."""


class EventReader:
    """`events` is what it has read; `streams` how often it had to connect; `whole` whether that is all."""

    def __init__(self, testbed: CampaignTestbed, run: str, session: aiohttp.ClientSession) -> None:
        self.run = run
        self.events: list[ObservedEvent] = []
        self.streams = 0
        self.whole = False
        self._testbed, self._session = testbed, session

    async def follow(self) -> None:
        """Read until the API reports the end of the stream."""
        while not await self._stream():
            await asyncio.sleep(PAUSE)
        self.whole = True

    @property
    def read(self) -> StreamRead:
        """For the checker."""
        return StreamRead(self.run, tuple(self.events), self.whole)

    async def _stream(self) -> bool:
        headers = {"Authorization": f"Bearer {self._testbed.key}", "Accept": "text/event-stream"}
        if self.events:
            headers["Last-Event-ID"] = str(self.events[-1].id)
        url = f"{self._testbed.api.url}/v1/runs/{id_of(self.run)}/events"
        self.streams += 1
        try:
            async with self._session.get(url, headers=headers) as answer:
                if answer.status == 204:
                    return True
                if answer.status in NONE_YET:
                    return False
                assert answer.status == 200, await answer.text()
                await self._read(answer)
        except (aiohttp.ClientError, TimeoutError):
            # Disconnected: resume after the last whole event.
            return False
        return False

    async def _read(self, answer: aiohttp.ClientResponse) -> None:
        fields: dict[str, str] = {}
        async for raw in answer.content:
            if not raw.endswith(b"\n"):
                return
            line = raw.decode().rstrip("\r\n")
            if line:
                name, _, value = line.partition(":")
                fields[name] = value.removeprefix(" ")
                continue
            if "data" in fields:
                data = json.loads(fields["data"])
                self.events.append(ObservedEvent(int(fields["id"]), fields["event"], data))
            fields = {}


class EventReaders:
    """All that follow while a campaign goes."""

    def __init__(self, testbed: CampaignTestbed) -> None:
        self._testbed = testbed
        self._following: dict[EventReader, asyncio.Task[None]] = {}
        self._session: aiohttp.ClientSession | None = None

    @contextlib.asynccontextmanager
    async def reading(self) -> AsyncIterator["EventReaders"]:
        """Read while the block is open."""
        limits = aiohttp.ClientTimeout(sock_read=60)
        connector = aiohttp.TCPConnector(limit=0)
        async with aiohttp.ClientSession(connector=connector, timeout=limits) as self._session:
            try:
                yield self
            finally:
                for task in self._following.values():
                    task.cancel()
                await asyncio.gather(*self._following.values(), return_exceptions=True)

    def follow(self, run: str) -> None:
        """One more reader, of that run."""
        assert self._session is not None
        reader = EventReader(self._testbed, run, self._session)
        self._following[reader] = asyncio.create_task(reader.follow())

    async def wait_results(self, seconds: float) -> tuple[list[StreamRead], list[Violation]]:
        """Return the reads of all readers once they have ended; after `seconds`, also who still waits.

        Raises what no reader should meet, such as an answer that it does not expect.
        """
        if not self._following:
            return [], []
        done, _ = await asyncio.wait(self._following.values(), timeout=seconds)
        for task in done:
            task.result()
        waiting = [reader.run for reader in self._following if not reader.whole]
        late = [Violation(EVENTS, run, "a reader never got the end of its stream") for run in waiting]
        return [reader.read for reader in self._following], late

    @property
    def note(self) -> str:
        """How many there were, and how often they had to connect."""
        return f"{len(self._following)} readers over {sum(one.streams for one in self._following)} streams"
