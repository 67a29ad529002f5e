"""A client that follows a run's events over as many streams as it takes, as a browser would.

Called by the tests of the facade's faults, which compare what it read with what the API tells later.
"""

import asyncio
import json

import aiohttp

from crds.names import id_of
from tests.campaign.observed import Event
from tests.campaign.yard import Yard

PAUSE = 0.5
NONE_YET = (404, 500, 502, 503, 429)
"""Answers after which a client tries again: the run may not be in the rows yet, the api may be on its way."""


class Reader:
    """`events` is what it has read; `streams` how often it had to connect."""

    def __init__(self, yard: Yard, run: str, session: aiohttp.ClientSession) -> None:
        self.run = run
        self.events: list[Event] = []
        self.streams = 0
        self._yard, self._session = yard, session

    async def follow(self) -> None:
        """Returns once the api says that all is told."""
        while not await self._stream():
            await asyncio.sleep(PAUSE)

    async def _stream(self) -> bool:
        headers = {"Authorization": f"Bearer {self._yard.key}", "Accept": "text/event-stream"}
        if self.events:
            headers["Last-Event-ID"] = str(self.events[-1].id)
        url = f"{self._yard.api.url}/v1/runs/{id_of(self.run)}/events"
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
            # Cut off: it goes on behind the last whole event.
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
                self.events.append(Event(int(fields["id"]), fields["event"], data))
            fields = {}
