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
from tests.campaign.testbed import ROOT

pytestmark = pytest.mark.campaign

USUAL_RUNS_PER_MINUTE = 10
"""Runs a minute of a busy installation: ten places, a minute each."""
RATE_FACTOR = 20
SOAK_SECONDS = float(os.environ.get("CREWYARD_SOAK_SECONDS") or 180)
WARM_UP_SECONDS = SOAK_SECONDS / 2
"""Until what is kept has its size, and the heaps theirs: that takes longer than retention, a tenth."""
SAMPLE_INTERVAL_SECONDS = max(1.0, SOAK_SECONDS / 600)
STREAMED_SHARE = 0.3
"""The share of runs whose events a client streams."""
MAX_OPEN_RUNS = 30
MAX_DELAY_SECONDS = 5.0
"""Seconds of delay that are made up for."""
POLL_INTERVAL_SECONDS = 2.0
ANSWER_TIMEOUT_SECONDS = 300.0
SAMPLES = ROOT / "test-results" / "soak.json"
"""All samples of the last soak: by process and figure, pairs of seconds since the begin and a value."""


@pytest.mark.timeout(SOAK_SECONDS + 600)
async def test_process_resources_do_not_grow(tmp_path):
    retention = {
        "CREWYARD_RUN_TTL": f"{SOAK_SECONDS / 20:.0f}",
        "CREWYARD_RECORD_TTL": f"{SOAK_SECONDS / 10:.0f}",
        "CREWYARD_SEAL_AFTER": f"{SOAK_SECONDS / 60:.0f}",
    }
    async with control_plane(tmp_path) as plane, service(tmp_path, plane, retention) as found:
        begun = time.monotonic()
        both = [SampleSeries("controller"), SampleSeries("api")]
        watching = [
            asyncio.ensure_future(watch(child, series, begun, SAMPLE_INTERVAL_SECONDS))
            for child, series in zip((found.testbed.controller, found.testbed.api), both, strict=True)
        ]
        counts = await load(found.testbed, begun + SOAK_SECONDS)
        for task in watching:
            task.cancel()
        outcomes = await asyncio.gather(*watching, return_exceptions=True)
        assert all(isinstance(outcome, asyncio.CancelledError) for outcome in outcomes), outcomes
        total = (await found.testbed.call("GET", "/v1/runs?per_page=1"))[1]["pagination"]["total"]
    SAMPLES.parent.mkdir(exist_ok=True)
    SAMPLES.write_text(json.dumps({series.name: series.values for series in both}))
    ended, streamed = counts["ended"], counts["read"]
    print(f"\n{ended} runs in {SOAK_SECONDS:.0f} s, {streamed} read live, {total} records at the end")
    due = SOAK_SECONDS * USUAL_RUNS_PER_MINUTE * RATE_FACTOR / 60
    assert ended > due / 2, f"the machine was too slow for the rate: {counts} of {due:.0f}"
    assert total < ended / 2, "retention did not keep up"
    wrong = judge(both)
    assert not wrong, wrong


def judge(both: list[SampleSeries]) -> list[str]:
    """What grows; prints all slopes."""
    wrong = []
    for series in both:
        for figure, samples in series.after(WARM_UP_SECONDS).items():
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

    Where the machine cannot keep up, fewer are posted: never more than `MAX_OPEN_RUNS` wait for their end.
    """
    counts = {"posted": 0, "ended": 0, "read": 0}
    chance = random.Random(1)
    tasks = set()
    pause = 60 / (USUAL_RUNS_PER_MINUTE * RATE_FACTOR)
    due = time.monotonic()
    while time.monotonic() < until:
        asked = {"seconds": chance.uniform(0.2, 2), "events": chance.randint(0, 30)}
        tasks.add(asyncio.ensure_future(one(testbed, asked, chance.random() < STREAMED_SHARE, counts)))
        due = max(due + pause, time.monotonic() - MAX_DELAY_SECONDS)
        await asyncio.sleep(max(0.0, due - time.monotonic()))
        done = {task for task in tasks if task.done()}
        if len(tasks) - len(done) >= MAX_OPEN_RUNS:
            done |= (await asyncio.wait(tasks - done, return_when=asyncio.FIRST_COMPLETED))[0]
        for task in done:
            task.result()
        tasks -= done
    await asyncio.gather(*tasks)
    return counts


async def one(testbed, asked, reads, counts):
    """One run, from its POST to its end."""
    run = await testbed.ask(
        "POST", "/v1/runs", {"deployment": testbed.project, "input": asked}, ANSWER_TIMEOUT_SECONDS
    )
    counts["posted"] += 1
    if reads:
        counts["read"] += await read(testbed, run["id"])
    async with asyncio.timeout(ANSWER_TIMEOUT_SECONDS):
        while (await testbed.ask("GET", f"/v1/runs/{run['id']}", None, ANSWER_TIMEOUT_SECONDS))[
            "completed_at"
        ] is None:
            await asyncio.sleep(POLL_INTERVAL_SECONDS)
    counts["ended"] += 1


async def read(testbed, run):
    """Read a run's events to their end; whether that was its terminal event."""
    headers = {"Authorization": f"Bearer {testbed.key}", "Accept": "text/event-stream"}
    limit = aiohttp.ClientTimeout(total=ANSWER_TIMEOUT_SECONDS)
    url = f"{testbed.api.url}/v1/runs/{run}/events"
    async with testbed.session.get(url, headers=headers, timeout=limit) as answer:
        text = (await answer.read()).decode()
    return "event: run.completed" in text
