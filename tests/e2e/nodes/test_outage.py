"""API outages while crews work: no output, artifact or result is lost."""

import asyncio
import time

import aiohttp
import pytest

from tests.e2e.testbed import eventually

SYSTEM = "crewyard-system"
OUTAGE_SECONDS = 12.0


async def scale(testbed, replicas: int) -> None:
    await testbed.kubectl("-n", SYSTEM, "scale", "deploy/crewyard-api", f"--replicas={replicas}")


async def back(testbed) -> None:
    """Wait until the API server responds again."""
    await scale(testbed, 1)

    async def look() -> bool:
        try:
            return (await testbed.call("GET", "/readyz")).status == 200
        except (aiohttp.ClientError, TimeoutError):
            return False

    await eventually(look, lambda ready: ready, 600, pause=0.5)


@pytest.mark.exclusive
async def test_api_outage_while_crews_work(testbed, crew):
    """Slow: the outage itself."""
    long = await crew.start("lines", input={"count": 120, "pause": 0.2})
    short = await crew.start("lines", input={"count": 50, "pause": 0.2})
    resting = await crew.start("sleeps", input={"seconds": OUTAGE_SECONDS / 2})
    for run, line in ((long, "line 3"), (short, "line 3"), (resting, "asleep")):
        await crew.wait_for_log(run, line)
    try:
        await scale(testbed, 0)
        await asyncio.sleep(OUTAGE_SECONDS)
        returned = time.time()
    finally:
        await back(testbed)
    for run, count in ((long, 120), (short, 50)):
        done = await crew.wait_finished(run)
        assert (done["status"], done["output"]) == ("succeeded", count), done
        events = await testbed.events(run)
        assert [m.id for m in events] == [str(number) for number in range(1, len(events) + 1)]
        logs = [m.data["message"] for m in events if m.event == "log"]
        assert logs == [f"line {number}" for number in range(count)]
    rested = await crew.wait_finished(resting)
    # It ended while the API server was away.
    assert rested["status"] == "succeeded" and rested["output"]["ended"] < returned
    listed = await testbed.get(f"/v1/runs/{resting}/artifacts")
    assert [item["name"] for item in listed] == ["begun.txt"]
