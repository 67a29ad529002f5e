"""One test of an outage: a test bed with an active deployment, runs in flight, a caller, faults one by one.

    async with outage("test_…", testbed) as found:
        await found.inject("object store: silent", link.fault(Silent()), seconds=8)
    demand(found.campaign.report)

Called by the tests of this directory.
"""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

from tests.campaign.campaign import Campaign, campaign
from tests.campaign.checks.checker import Violation
from tests.campaign.ledger import END
from tests.campaign.outages.caller import ContinuousCaller
from tests.campaign.testbed import CampaignTestbed

ANSWERS = "answers"
FAULT = "fault"
BITE_SECONDS = 90.0
"""Until a fault has disturbed something, on a slow machine."""
BACK_SECONDS = 120.0
"""Until all is as before, once the fault is over."""


class Outage:
    """What a test works with."""

    def __init__(self, campaign: Campaign, caller: ContinuousCaller) -> None:
        self.campaign, self.caller = campaign, caller
        self.testbed = campaign.testbed

    async def inject(
        self,
        kind: str,
        fault: AbstractAsyncContextManager[Any],
        seconds: float,
        during: Callable[[], Awaitable[Any]] | None = None,
        expected: tuple[str, tuple[int | str, ...]] | None = None,
    ) -> None:
        """Inject one fault until `during` is done, then for `seconds`, and longer until it had an effect.

        It had an effect when the context's rule has `injected` something, and the caller got a response as in
        `expected`: the call, and the statuses of which one must have been received.
        """
        self.caller.clear()

        async def doing() -> None:
            async with fault as rule:
                if during is not None:
                    await during()
                await asyncio.sleep(seconds)
                if hasattr(rule, "injected") and not await wait_until(
                    lambda: rule.injected > 0, BITE_SECONDS
                ):
                    self.add_violation(FAULT, f"{kind} disturbed nothing")
                if expected and not await wait_until(
                    lambda: self.caller.count(expected[0], *expected[1]) > 0, BITE_SECONDS
                ):
                    self.add_violation(
                        FAULT, f"{kind}: {expected[0]} was never answered by one of {expected[1]}"
                    )

        await self.campaign.fault(kind, doing())

    def add_violation(self, kind: str, text: str) -> None:
        """Record a violation."""
        self.campaign.more.append(Violation(kind, "", text))

    async def store_artifact(self, size: int) -> str:
        """A run that ended well, whose artifact the caller asks for from now on; its name."""
        run = await self.campaign.work.post({"events": 1, "artifact": size})
        await self.wait_ended(run)
        lines = [
            line for line in self.testbed.ledger.entries() if line.run == run and "artifact" in line.data
        ]
        self.caller.set_artifact(run, str(lines[0].data["artifact"]), str(lines[0].data["sha256"]))
        return run

    async def wait_ended(self, *runs: str) -> None:
        """Wait until these runs were seen to end; those that do not are the checker's to find."""
        await self.campaign.watcher.wait_ended(set(runs), self.campaign.end_seconds)

    async def crew_done(self, *runs: str, seconds: float = BITE_SECONDS) -> None:
        """Wait for the last output of these runs' crews; add a note for those without."""

        def done() -> bool:
            over = {line.run for line in self.testbed.ledger.entries() if line.what == END}
            return set(runs) <= over

        if not await wait_until(done, seconds):
            self.add_violation(FAULT, f"not all crews of {runs} ended in {seconds:.0f} s")

    async def wait_ready(self, seconds: float = BACK_SECONDS) -> None:
        """Wait until the api says that it is ready; a note where it does not."""
        await self.testbed.api.ready(seconds)


async def wait_until(holds: Callable[[], bool], seconds: float) -> bool:
    """Whether it holds within `seconds`; returns once it does."""
    end = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > end:
            return False
        await asyncio.sleep(0.1)
    return True


@contextlib.asynccontextmanager
async def outage(
    name: str, testbed: CampaignTestbed, concurrency: int, seed: int | None = None
) -> AsyncIterator[Outage]:
    """An outage; the campaign's verdict is passed when the block ends without an error."""
    async with campaign(name, testbed, concurrency, seed) as found:
        async with ContinuousCaller(testbed).calling() as caller:
            made = Outage(found, caller)
            yield made
        for text in sorted(set(caller.wrong))[:20]:
            made.add_violation(ANSWERS, text)
