"""The maximum output of one run, through pod, API server and store to the client.

A thousand files of a mebibyte, and a million log lines with some more that are dropped. The runner's own part
is in tests/heavy; here the API server is real, and the test measures its memory.
"""

import asyncio
import hashlib
import json
import random
import time
from collections.abc import AsyncIterator

import aiohttp
import pytest

from bench.runs.artifact import reset_peak, resident_mib
from crds.names import id_of
from tests.campaign.checks.observed import SUCCEEDED
from tests.campaign.crew.main import content
from tests.campaign.testbed import CampaignTestbed, open_testbed
from tests.campaign.workload import Workload

FILES, SIZE = 1000, 1 << 20
LINES, OVER = 1_000_000, 5_000
PAGE = 100
MORE_MIB = 32
"""Maximum growth of the API server's memory."""
ROOM = {"run": {"resources": {"limits": {"memory": "512Mi", "ephemeral-storage": "2Gi"}}}}
SMALL = {"events": 5, "artifact": 300_000}


async def finished(testbed: CampaignTestbed, run: str, seconds: float = 1800) -> dict:
    async with asyncio.timeout(seconds):
        while True:
            found = await testbed.ask("GET", f"/v1/runs/{id_of(run)}")
            if found["completed_at"] is not None:
                assert found["status"] == SUCCEEDED, found
                return found
            await asyncio.sleep(0.5)


async def warm(testbed: CampaignTestbed, work: Workload) -> float:
    """Return the API server's MiB after a small run; reset its peak."""
    run = await work.post(SMALL)
    await finished(testbed, run)
    await testbed.ask("GET", f"/v1/runs/{id_of(run)}/artifacts/artifact.bin")
    assert len([event async for event in events(testbed, run)]) > 5
    before = resident_mib(testbed.api.pid)
    reset_peak(testbed.api.pid)
    return before


async def events(testbed: CampaignTestbed, run: str) -> AsyncIterator[tuple[int, str, dict]]:
    """Id, type and data of a run's events, as the stream tells them to its end."""
    sent = {"Authorization": f"Bearer {testbed.key}", "Accept": "text/event-stream"}
    limit = aiohttp.ClientTimeout(total=1800)
    path = f"{testbed.api.url}/v1/runs/{id_of(run)}/events"
    async with testbed.session.get(path, headers=sent, timeout=limit) as answer:
        assert answer.status == 200, await answer.text()
        fields: dict[str, str] = {}
        async for raw in answer.content:
            if raw != b"\n":
                name, _, value = raw.decode().rstrip("\n").partition(": ")
                fields[name] = value
            else:
                if "data" in fields:
                    yield int(fields["id"]), fields["event"], json.loads(fields["data"])
                fields = {}


async def listed(testbed: CampaignTestbed, run: str) -> dict[str, dict]:
    """All rows of a run's artifacts, by name; each page says how many there are."""
    found: dict[str, dict] = {}
    for page in range(1, FILES // PAGE + 1):
        path = f"/v1/runs/{id_of(run)}/artifacts?per_page={PAGE}&page={page}"
        status, answer = await testbed.call("GET", path)
        assert (status, answer["pagination"]["total"], len(answer["data"])) == (200, FILES, PAGE)
        found |= {row["name"]: row for row in answer["data"]}
    return found


def sha256(run: str, number: int) -> str:
    return hashlib.sha256(content(f"{run}-{number}", SIZE)).hexdigest()


@pytest.mark.campaign
async def test_thousand_files_are_stored_and_downloaded(place):
    async with open_testbed(place, project=ROOM) as testbed:
        work = Workload(testbed)
        before = await warm(testbed, work)
        begun = time.monotonic()
        run = await work.post({"exit": "keeps", "count": FILES, "size": SIZE}, (SUCCEEDED,))
        await finished(testbed, run)
        stored, took = resident_mib(testbed.api.pid, peak=True) - before, time.monotonic() - begun
        rows = await listed(testbed, run)
        assert len(rows) == FILES
        wrong = [
            number
            for number in range(FILES)
            if (rows[f"{number:04}.bin"]["size"], rows[f"{number:04}.bin"]["sha256"])
            != (SIZE, sha256(run, number))
        ]
        assert wrong == []
        reset_peak(testbed.api.pid)
        for number in random.Random(run).sample(range(FILES), 20):
            data = await testbed.ask("GET", f"/v1/runs/{id_of(run)}/artifacts/{number:04}.bin")
            assert hashlib.sha256(data).hexdigest() == sha256(run, number), number
        growth = resident_mib(testbed.api.pid, peak=True) - before
        print(f"{FILES} files in {took:.0f} s; the API server grew by {stored:+.0f} MiB, later {growth:+.0f}")
        assert max(stored, growth) <= MORE_MIB
        artifact_events = [data async for _, kind, data in events(testbed, run) if kind == "artifact"]
        assert sorted(data["name"] for data in artifact_events if not data["partial"]) == sorted(rows)


@pytest.mark.campaign
async def test_million_lines_are_stored_and_truncation_is_reported(place):
    async with open_testbed(place, project=ROOM) as testbed:
        work = Workload(testbed)
        before = await warm(testbed, work)
        begun = time.monotonic()
        run = await work.post({"exit": "counts", "count": LINES + OVER}, (SUCCEEDED,))
        await finished(testbed, run)
        took, peak = time.monotonic() - begun, resident_mib(testbed.api.pid, peak=True) - before
        reset_peak(testbed.api.pid)
        begun, last, number, rest = time.monotonic(), 0, 0, []
        async for identity, kind, data in events(testbed, run):
            assert identity == last + 1
            last = identity
            if kind == "log" and number < LINES:
                assert data["message"] == str(number)
                number += 1
            else:
                rest.append((kind, data.get("message", "")))
        read, growth = time.monotonic() - begun, resident_mib(testbed.api.pid, peak=True) - before
        assert number == LINES and last == LINES + 3
        assert [kind for kind, _ in rest] == ["run.started", "log", "run.completed"]
        assert rest[1][1].startswith(f"{OVER} log lines were dropped")
        page = f"/v1/runs/{id_of(run)}/events?per_page={PAGE}&page={LINES // PAGE}"
        found = await testbed.ask("GET", page, Accept="application/json")
        assert {int(one["id"]) for one in found} <= set(range(1, last + 1)) and len(found) == PAGE
        print(
            f"{LINES} lines in {took:.0f} s, read again in {read:.0f} s; "
            f"the API server grew by {peak:+.0f} MiB, while it was read {growth:+.0f}"
        )
        assert max(peak, growth) <= MORE_MIB
