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

import aiohttp
import pytest

from bench.hollow.control_plane import control_plane
from bench.hollow.service import service
from tests.campaign.soak.sampling import LEAST, SampleSeries, watch
from tests.campaign.soak.slope import fit

pytestmark = pytest.mark.campaign

USUAL = 10
"""Runs a minute of a busy installation: ten places, a minute each."""
TIMES = 20
SECONDS = float(os.environ.get("CREWYARD_SOAK_SECONDS") or 180)
WARM = SECONDS / 2
"""Until what is kept has its size, and the heaps theirs: that takes longer than retention, a tenth."""
EVERY = max(1.0, SECONDS / 600)
READ = 0.3
"""The share of runs whose events a client streams."""
AT_ONCE = 30
LATE = 5.0
"""Seconds of delay that are made up for."""
AGAIN = 2.0
PATIENCE = 300.0


@pytest.mark.timeout(SECONDS + 600)
async def test_process_resources_do_not_grow(tmp_path):
    retention = {
        "CREWYARD_RUN_TTL": f"{SECONDS / 20:.0f}",
        "CREWYARD_RECORD_TTL": f"{SECONDS / 10:.0f}",
        "CREWYARD_SEAL_AFTER": f"{SECONDS / 60:.0f}",
    }
    async with control_plane(tmp_path) as plane, service(tmp_path, plane, retention) as found:
        begun = time.monotonic()
        both = [SampleSeries("controller"), SampleSeries("api")]
        watching = [
            asyncio.ensure_future(watch(child, series, begun, EVERY))
            for child, series in zip((found.testbed.controller, found.testbed.api), both, strict=True)
        ]
        counts = await load(found.testbed, begun + SECONDS)
        for task in watching:
            task.cancel()
        outcomes = await asyncio.gather(*watching, return_exceptions=True)
        assert all(isinstance(outcome, asyncio.CancelledError) for outcome in outcomes), outcomes
        total = (await found.testbed.call("GET", "/v1/runs?per_page=1"))[1]["pagination"]["total"]
    (tmp_path / "samples.json").write_text(json.dumps([[one.name, one.values] for one in both]))
    print(
        f"\n{counts['ended']} runs in {SECONDS:.0f} s, {counts['read']} read live, {total} records at the end"
    )
    due = SECONDS * USUAL * TIMES / 60
    assert counts["ended"] > due / 2, f"the machine was too slow for the rate: {counts} of {due:.0f}"
    assert total < counts["ended"] / 2, "retention did not keep up"
    wrong = judge(both)
    assert not wrong, wrong


def judge(both: list[SampleSeries]) -> list[str]:
    """What grows; prints all slopes."""
    wrong = []
    for series in both:
        for figure, samples in series.after(WARM).items():
            found = fit(samples)
            message = (
                f"{series.name} {figure}: {found.mean:.2f}, slope {found.per_hour:+.3f} "
                f"({found.least:+.3f} to {found.most:+.3f}) an hour over {found.span * 60:.0f} min"
            )
            print(message)
            if found.grows(LEAST[figure]):
                wrong.append(message)
    return wrong


async def load(testbed, until):
    """Posts runs at an even rate, reads some of them live; returns when all have ended.

    Where the machine cannot keep up, fewer are posted: never more than `AT_ONCE` wait for their end.
    """
    counts = {"posted": 0, "ended": 0, "read": 0}
    chance = random.Random(1)
    tasks = set()
    pause = 60 / (USUAL * TIMES)
    due = time.monotonic()
    while time.monotonic() < until:
        asked = {"seconds": chance.uniform(0.2, 2), "events": chance.randint(0, 30)}
        tasks.add(asyncio.ensure_future(one(testbed, asked, chance.random() < READ, counts)))
        due = max(due + pause, time.monotonic() - LATE)
        await asyncio.sleep(max(0.0, due - time.monotonic()))
        done = {task for task in tasks if task.done()}
        if len(tasks) - len(done) >= AT_ONCE:
            done |= (await asyncio.wait(tasks - done, return_when=asyncio.FIRST_COMPLETED))[0]
        for task in done:
            task.result()
        tasks -= done
    await asyncio.gather(*tasks)
    return counts


async def one(testbed, asked, reads, counts):
    """One run, from its POST to its end."""
    run = await testbed.ask("POST", "/v1/runs", {"deployment": testbed.project, "input": asked}, PATIENCE)
    counts["posted"] += 1
    if reads:
        counts["read"] += await read(testbed, run["id"])
    async with asyncio.timeout(PATIENCE):
        while (await testbed.ask("GET", f"/v1/runs/{run['id']}", None, PATIENCE))["completed_at"] is None:
            await asyncio.sleep(AGAIN)
    counts["ended"] += 1


async def read(testbed, run):
    """Read a run's events to their end; whether that was its terminal event."""
    headers = {"Authorization": f"Bearer {testbed.key}", "Accept": "text/event-stream"}
    limit = aiohttp.ClientTimeout(total=PATIENCE)
    url = f"{testbed.api.url}/v1/runs/{run}/events"
    async with testbed.session.get(url, headers=headers, timeout=limit) as answer:
        text = (await answer.read()).decode()
    return "event: run.completed" in text
