"""PostgreSQL is away, hangs, is full, takes no writes or no connections: 503, and then all is there."""

import asyncio
from pathlib import Path

import pytest

from tests.campaign.outages import databases
from tests.campaign.outages.databases import PostgresBehindLink
from tests.campaign.outages.network.link import open_link
from tests.campaign.outages.network.rule import SilentLink, SlowLink
from tests.campaign.outages.outage import Outage, outage
from tests.campaign.outages.volume import full, volume
from tests.campaign.reports.report import require_good
from tests.campaign.testbed import open_testbed
from tests.unit.api.store import postgres_server as pg

CONCURRENCY = 8
LONG = 3
READERS = 12
STEPS = 300
"""Of each long run: it talks all through the faults."""
NOT_READY = ("ready", (503,))
NAME = "outages"


@pytest.fixture
def server(place):
    if not (pg.PROGRAMS / "postgres").exists():
        pytest.skip(pg.MISSING)
    found = PostgresBehindLink()
    try:
        # Below a directory that its user may enter.
        with volume(found.directory / "small", "64m", "postgres") as small:
            yield found, small
            found.stop()
    finally:
        found.close()


async def work(found: Outage) -> None:
    """Request runs during database faults; return when they are acknowledged."""
    script = {"events": 3, "artifact": 1000}
    await asyncio.gather(found.campaign.work.post(script), found.campaign.work.apply([script]))


@pytest.mark.campaign
async def test_every_database_fault(place: Path, server):
    database, small = server
    await asyncio.to_thread(database.sql, "postgres", f"create tablespace small location '{small}'")
    await asyncio.to_thread(
        database.sql, "postgres", f"create database {NAME} template template0 tablespace small"
    )
    async with (
        open_link("127.0.0.1", database.port) as link,
        open_testbed(
            place,
            concurrency=CONCURRENCY,
            settings={"CREWYARD_DATABASE_URL": database.address(NAME, link.port)},
        ) as testbed,
        outage("test_every_database_fault", testbed, CONCURRENCY) as found,
    ):
        talking = {"events": STEPS, "pause": 0.4, "artifact": 300_000}
        runs = [await found.campaign.work.post(talking) for _ in range(LONG)]
        for number in range(READERS):
            found.campaign.readers.follow(runs[number % LONG])
        faults = (
            ("database killed", databases.killed(database), 4, NOT_READY),
            ("database halted", pg.halted(database), 20, NOT_READY),
            ("database refuses", link.refusing(), 5, NOT_READY),
            ("database silent", link.fault(SilentLink()), 8, NOT_READY),
            ("database answers garbage", databases.mad(link), 4, NOT_READY),
            ("database connections cut", databases.flapping(link), 5, None),
            ("database slow", link.fault(SlowLink(0.1, 1_000_000)), 5, None),
            ("database read-only", databases.read_only(database), 5, NOT_READY),
            ("database connections exhausted", databases.exhausted(database), 6, NOT_READY),
            ("database full", full(small), 6, None),
        )
        for kind, fault, seconds, expected in faults:
            asked: list[asyncio.Task[None]] = []

            async def during(asked=asked) -> None:
                asked.append(asyncio.create_task(work(found)))

            await found.inject(kind, fault, seconds, during, expected)
            await found.wait_ready()
            await asyncio.gather(*asked)
    require_good(found.campaign.report)
