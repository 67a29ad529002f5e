"""A watcher during a campaign: objects by a separate watch, the API's lists by polling.

Retries after errors. Called by `tests.campaign.campaign`.
"""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from typing import Any

import aiohttp

from crds.kinds import RUN
from crds.names import name_of
from kube import errors
from tests.campaign.checks.observed import FAILED, PENDING, RUNNING, SUCCEEDED, TERMINAL, StatusObservation
from tests.campaign.testbed import CampaignTestbed
from tests.campaign.workload import JOB

PAUSE = 0.5
PAGE = 100


class StatusWatcher:
    """What was seen. `sights` are changes only; `ended` says when an end was first seen."""

    def __init__(self, testbed: CampaignTestbed, jobs: bool = False) -> None:
        self._testbed = testbed
        self._kind, self._status = (JOB, job_status) if jobs else (RUN, run_status)
        self._jobs = jobs
        self._last: dict[tuple[str, str], str] = {}
        self.sights: list[StatusObservation] = []
        self.ended: dict[str, float] = {}
        self.active: list[int] = []

    @contextlib.asynccontextmanager
    async def watching(self) -> AsyncIterator["StatusWatcher"]:
        """Poll while the block is open."""
        works = [self._objects(), *([] if self._jobs else [self._lists()])]
        tasks = [asyncio.create_task(work) for work in works]
        try:
            yield self
            for task in tasks:
                if task.done():
                    task.result()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def wait_ended(self, names: set[str], seconds: float) -> set[str]:
        """Wait until all of them have been seen to end; after `seconds`, with those that have not."""
        limit = time.monotonic() + seconds
        while left := names - self.ended.keys():
            if time.monotonic() > limit:
                return left
            await asyncio.sleep(0.1)
        return set()

    def record(self, source: str, run: str, status: str) -> None:
        """Record a status that differs from the last one of its source."""
        if self._last.get((source, run)) == status:
            return
        self._last[(source, run)] = status
        self.sights.append(StatusObservation(time.time(), source, run, status))
        if status in TERMINAL:
            self.ended.setdefault(run, time.time())

    async def _objects(self) -> None:
        kube, kind = self._testbed.kube, self._kind
        while True:
            try:
                listing = await kube.list(kind)
                for raw in listing.items:
                    self._object(raw)
                async for event in kube.watch(kind, listing.resource_version, seconds=60):
                    if event.type in ("ADDED", "MODIFIED"):
                        self._object(event.object)
            except errors.KubeError:
                await asyncio.sleep(PAUSE)

    def _object(self, raw: dict[str, Any]) -> None:
        if not self._jobs and not self._testbed.counts(raw):
            return
        self.record("object", raw["metadata"]["name"], self._status(raw))

    async def _lists(self) -> None:
        while True:
            with contextlib.suppress(aiohttp.ClientError, TimeoutError, ValueError, KeyError):
                await self._list()
            await asyncio.sleep(PAUSE)

    async def _list(self) -> None:
        testbed = self._testbed
        status, found = await testbed.call(
            "GET", f"/v1/deployments?project={testbed.project}&per_page={PAGE}"
        )
        if status == 200:
            self.active.append(sum(item["status"] == "active" for item in found["data"]))
        page = 1
        while True:
            status, found = await testbed.call("GET", testbed.runs_page(page, PAGE))
            if status != 200:
                return
            for one in found["data"]:
                self.record("list", name_of(one["id"]), one["status"])
            # Newest first: the older pages are those of runs that ended long ago.
            if len(found["data"]) < PAGE or all(item["completed_at"] for item in found["data"]):
                return
            page += 1


def run_status(raw: dict[str, Any]) -> str:
    """A Run's status in the API's words."""
    return str((raw.get("status") or {}).get("phase") or PENDING).lower()


def job_status(raw: dict[str, Any]) -> str:
    """A Job's, in the same words."""
    status = raw.get("status") or {}
    for condition in status.get("conditions") or ():
        if condition["status"] == "True" and condition["type"] in ("Complete", "Failed"):
            return SUCCEEDED if condition["type"] == "Complete" else FAILED
    return RUNNING if status.get("startTime") else PENDING
