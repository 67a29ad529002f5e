"""Redis outages: requests are not rejected when the shared rate counter is away, hangs or sends garbage."""

import contextlib
import signal

import pytest

from tests.campaign.outages.network.link import open_link
from tests.campaign.outages.network.rule import GarbageBytes, SilentLink, SlowLink
from tests.campaign.outages.outage import outage
from tests.campaign.reports.report import require_good
from tests.campaign.testbed import open_testbed
from tests.unit.api.ratelimit import redis_server

CONCURRENCY = 6
SECONDS = 5.0
AWAY = "shared_rate_limit_away"


@pytest.fixture
def server():
    yield from redis_server.serving()


@contextlib.asynccontextmanager
async def killed(server):
    server.stop()
    yield
    server.start()


@contextlib.asynccontextmanager
async def halted(server):
    server.signal(signal.SIGSTOP)
    yield
    server.signal(signal.SIGCONT)


@pytest.mark.campaign
async def test_every_redis_fault(place, server):
    async with (
        open_link("127.0.0.1", server.port) as link,
        open_testbed(
            place,
            concurrency=CONCURRENCY,
            settings={"CREWYARD_RATE_LIMIT_URL": f"redis://:{redis_server.PASSWORD}@127.0.0.1:{link.port}/0"},
        ) as testbed,
        outage("test_every_redis_fault", testbed, CONCURRENCY) as found,
    ):
        await found.store_artifact(1000)
        faults = (
            ("redis killed", killed(server)),
            ("redis halted", halted(server)),
            ("redis refuses", link.refusing()),
            ("redis silent", link.fault(SilentLink())),
            ("redis slow", link.fault(SlowLink(0.3, 1000))),
            ("redis answers garbage", link.fault(GarbageBytes())),
        )
        for kind, fault in faults:
            run = await found.campaign.work.post({"events": 5, "pause": 0.3, "artifact": 1000})

            async def during(run=run) -> None:
                await found.crew_done(run)

            await found.inject(kind, fault, SECONDS, during)
            for call in ("ready", "project", "runs", "artifact"):
                if found.caller.count(call, 503, 429):
                    found.add_violation("answers", f"{kind}: {call} was refused")
                if not found.caller.count(call, 200):
                    found.add_violation("answers", f"{kind}: {call} was never answered")
        if AWAY not in testbed.api.log.read_text():
            found.add_violation("answers", f"the log does not say {AWAY}")
    require_good(found.campaign.report)
