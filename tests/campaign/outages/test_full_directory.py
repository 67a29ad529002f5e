"""The directory of index, events and blobs is full while crews work and callers ask: nothing is lost."""

import asyncio

import pytest

from tests.campaign.bugs.pod_scenes import started
from tests.campaign.outages.outage import BACK_SECONDS, outage
from tests.campaign.outages.sources import UploadedSource, source
from tests.campaign.outages.test_object_store import agree
from tests.campaign.outages.volume import full, volume
from tests.campaign.reports.report import require_good
from tests.campaign.testbed import open_testbed

CONCURRENCY = 6
TIMES = 3


@pytest.mark.campaign
async def test_data_directory_is_full(place):
    """Three times, for each time other writes meet it."""
    with volume(place / "small", "96m") as small:
        async with (
            open_testbed(
                place, concurrency=CONCURRENCY, settings={"CREWYARD_DATA": str(small / "data")}
            ) as testbed,
            outage("test_data_directory_is_full", testbed, CONCURRENCY) as found,
        ):
            await found.store_artifact(300_000)
            for number in range(TIMES):
                scripts = [
                    {"events": 30, "pause": 0.2, "artifact": size} for size in (1000, 300_000, 5_000_000)
                ]
                runs = [await found.campaign.work.post(script) for script in scripts]
                # Their claims need the disk; from here on they talk and store.
                await asyncio.gather(*(started(testbed, run) for run in runs))
                sent = await UploadedSource.announced(testbed, source(f"full {number}"))
                asked = []

                async def during(runs=runs, sent=sent, asked=asked) -> None:
                    asked.append(asyncio.create_task(found.campaign.work.post({"events": 3})))
                    asked.append(asyncio.create_task(found.campaign.work.apply([{"events": 3}])))
                    await asyncio.gather(found.crew_done(*runs), sent.send())

                await found.inject("directory full", full(small), 3, during, ("ready", (503,)))
                await found.wait_ready()
                await asyncio.gather(*asked)
                await found.wait_ended(*runs)
                await sent.arrive(BACK_SECONDS)
                if sent.odd:
                    found.add_violation("answers", f"the upload was answered {sent.odd}")
            await found.wait_ended(*(one.run for one in found.campaign.work.requested))
            await agree(found, small / "data" / "blobs")
    require_good(found.campaign.report)
