"""R9: twenty times the usual rate for half an hour, on nodes without a machine: nothing held grows.

Runs come through the API, with readers of their events, and go by retention: objects, logs and records, so
that what is kept stays as much. `CREWYARD_SOAK_SECONDS` is the length; three minutes are the least that shows
anything.
"""

import asyncio
import json
import os
import random
import time

import pytest

from bench.hollow_plane import plane
from bench.hollow_service import service
from tests.campaign.soak.sampling import LEAST, Series, watch
from tests.campaign.soak.slope import fit

pytestmark = pytest.mark.campaign

USUAL = 10
"""Runs a minute of a busy installation: ten places, a minute each."""
TIMES = 20
SECONDS = float(os.environ.get("CREWYARD_SOAK_SECONDS") or 180)
WARM = SECONDS / 3
"""Until all that is kept has reached its size: retention works from a tenth on."""
EVERY = max(1.0, SECONDS / 600)
READ = 0.3
"""The share of runs whose events somebody reads as they come."""
AT_ONCE = 100


@pytest.mark.timeout(SECONDS + 600)
async def test_nothing_that_a_process_holds_grows(tmp_path):
    retention = {
        "CREWYARD_RUN_TTL": f"{SECONDS / 20:.0f}",
        "CREWYARD_RECORD_TTL": f"{SECONDS / 10:.0f}",
        "CREWYARD_SEAL_AFTER": f"{SECONDS / 60:.0f}",
    }
    async with plane(tmp_path) as ground, service(tmp_path, ground, retention) as found:
        begun = time.monotonic()
        both = [Series("controller"), Series("api")]
        watching = [
            asyncio.ensure_future(watch(child, series, begun, EVERY))
            for child, series in zip((found.yard.controller, found.yard.api), both, strict=True)
        ]
        counts = await load(found.yard, begun + SECONDS)
        for task in watching:
            task.cancel()
        outcomes = await asyncio.gather(*watching, return_exceptions=True)
        assert all(isinstance(outcome, asyncio.CancelledError) for outcome in outcomes), outcomes
        total = (await found.yard.call("GET", "/v1/runs?per_page=1"))[1]["pagination"]["total"]
    (tmp_path / "samples.json").write_text(json.dumps([[one.name, one.values] for one in both]))
    print(
        f"\n{counts['ended']} runs in {SECONDS:.0f} s, {counts['read']} read live, {total} records at the end"
    )
    assert counts["ended"] > 0.9 * SECONDS * USUAL * TIMES / 60, counts
    assert total < counts["ended"] / 2, "retention did not keep up"
    wrong = judge(both)
    assert not wrong, wrong


def judge(both: list[Series]) -> list[str]:
    """What grows; prints all slopes."""
    wrong = []
    for series in both:
        for figure, samples in series.after(WARM).items():
            found = fit(samples)
            said = (
                f"{series.name} {figure}: {found.mean:.2f}, slope {found.per_hour:+.3f} "
                f"± {found.error:.3f} an hour over {found.span * 60:.0f} min"
            )
            print(said)
            if found.grows(LEAST[figure]):
                wrong.append(said)
    return wrong


async def load(yard, until):
    """Posts runs at an even rate, reads some of them live; returns when all have ended."""
    counts = {"posted": 0, "ended": 0, "read": 0}
    chance = random.Random(1)
    tasks = set()
    places = asyncio.Semaphore(AT_ONCE)
    pause = 60 / (USUAL * TIMES)
    due = time.monotonic()

    async def one(reads):
        async with places:
            asked = {"seconds": chance.uniform(0.2, 2), "events": chance.randint(0, 30)}
            run = await yard.ask("POST", "/v1/runs", {"deployment": yard.project, "input": asked})
            counts["posted"] += 1
            if reads:
                counts["read"] += await read(yard, run["id"])
            while (await yard.ask("GET", f"/v1/runs/{run['id']}"))["completed_at"] is None:
                await asyncio.sleep(1)
            counts["ended"] += 1

    while time.monotonic() < until:
        task = asyncio.ensure_future(one(chance.random() < READ))
        tasks.add(task)
        for done in [task for task in tasks if task.done()]:
            done.result()
            tasks.discard(done)
        due += pause
        await asyncio.sleep(max(0.0, due - time.monotonic()))
    await asyncio.gather(*tasks)
    return counts


async def read(yard, run):
    """Reads a run's events to their end; whether that was its terminal event."""
    headers = {"Authorization": f"Bearer {yard.key}", "Accept": "text/event-stream"}
    async with yard.session.get(f"{yard.api.url}/v1/runs/{run}/events", headers=headers) as answer:
        text = (await answer.read()).decode()
    return "event: run.completed" in text
