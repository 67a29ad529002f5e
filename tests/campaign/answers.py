"""People who answer the questions of runs: two at the same time, each with a value of their own.

Called by `tests.campaign.campaign`; the checker compares what the API accepted with what the crew got.
"""

import asyncio
import contextlib
import random
from collections.abc import AsyncIterator

import aiohttp

from crds.names import id_of
from tests.campaign.checks.observed import TERMINAL, SentAnswer
from tests.campaign.testbed import ApiAway, CampaignTestbed

PEOPLE = 2
POLL_SECONDS = 0.3
ANSWER_SECONDS = 180.0
"""For one answer, while the API is away."""
REFUSED = (404, 409)
"""The run has ended, or the question has its answer or is closed."""


class RunAnswers:
    """All answers that were sent while a campaign goes."""

    def __init__(self, testbed: CampaignTestbed, seed: int | None) -> None:
        self.sent: list[SentAnswer] = []
        self._testbed, self._random = testbed, random.Random(seed)
        self._following: set[asyncio.Task[None]] = set()

    @contextlib.asynccontextmanager
    async def answering(self) -> AsyncIterator["RunAnswers"]:
        """Answer while the block is open."""
        try:
            yield self
        finally:
            for task in self._following:
                task.cancel()
            await asyncio.gather(*self._following, return_exceptions=True)

    def follow(self, run: str) -> None:
        """Answer each question of this run until it has ended."""
        self._following.add(asyncio.create_task(self._answer_all(run)))

    def check(self) -> None:
        """Raise what a person met and should not meet."""
        for task in self._following:
            if task.done() and not task.cancelled():
                task.result()

    async def _answer_all(self, run: str) -> None:
        answered: set[str] = set()
        while True:
            # A Run that kubectl made may not be in the index yet.
            with contextlib.suppress(ApiAway, AssertionError):
                seen = await self._testbed.ask("GET", f"/v1/runs/{id_of(run)}")
                for one in seen.get("input_requests", ()):
                    if one["request_id"] not in answered:
                        answered.add(one["request_id"])
                        people = (self._answer(run, one["request_id"]) for _ in range(PEOPLE))
                        self.sent += await asyncio.gather(*people)
                if seen["status"] in TERMINAL:
                    return
            await asyncio.sleep(POLL_SECONDS)

    async def _answer(self, run: str, request: str) -> SentAnswer:
        """Send one answer, repeated until there is a response."""
        value = self._random.randrange(1 << 30)
        end = asyncio.get_running_loop().time() + ANSWER_SECONDS
        while True:
            status: object = None
            with contextlib.suppress(aiohttp.ClientError, TimeoutError, ValueError):
                path = f"/v1/runs/{id_of(run)}/inputs/{request}"
                status, _ = await self._testbed.call("POST", path, {"value": value})
            if status == 200 or status in REFUSED:
                return SentAnswer(run, request, value, accepted=status == 200)
            assert asyncio.get_running_loop().time() < end, f"an answer to {run} {request} got {status}"
            await asyncio.sleep(POLL_SECONDS)
