"""A client that requests everything continuously: it must get correct responses during every outage.

    async with ContinuousCaller(testbed).calling() as caller:
        ...
    assert caller.wrong == []

An answer may be a success or a 503 that says when to try again; an artifact is whole, or seen to be cut.
Called by the tests of outages.
"""

import asyncio
import contextlib
import hashlib
import json
from collections import Counter
from collections.abc import AsyncIterator

import aiohttp

from crds.names import id_of
from tests.campaign.testbed import CampaignTestbed

PAUSE = 0.25
SECONDS = 60.0
"""For one answer: far above what is promised, on a slow machine."""
CUT = "cut"
"""In place of a status: the body ended before its announced length."""


class ContinuousCaller:
    """`seen` counts answers by call and status since `clear`; `wrong` is what must not have been answered."""

    def __init__(self, testbed: CampaignTestbed) -> None:
        self.seen: Counter[tuple[str, int | str]] = Counter()
        self.wrong: list[str] = []
        self._testbed = testbed
        self._artifact: tuple[str, str, str] | None = None

    def clear(self) -> None:
        """Reset the counts."""
        self.seen.clear()

    def set_artifact(self, run: str, name: str, sha256: str) -> None:
        """An artifact that is stored: it is asked for, too."""
        self._artifact = (run, name, sha256)

    def count(self, call: str, *statuses: int | str) -> int:
        """How often a call was answered so."""
        return sum(self.seen[call, status] for status in statuses)

    @contextlib.asynccontextmanager
    async def calling(self) -> AsyncIterator["ContinuousCaller"]:
        """Send requests while the block is open."""
        calls = [
            ("ready", "/readyz"),
            ("project", f"/v1/projects/{self._testbed.project}"),
            ("runs", "/v1/runs?per_page=5"),
        ]
        tasks = [asyncio.create_task(self._again(name, path)) for name, path in calls]
        tasks.append(asyncio.create_task(self._artifacts()))
        try:
            yield self
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _again(self, name: str, path: str) -> None:
        while True:
            await self._ask(name, path)
            await asyncio.sleep(PAUSE)

    async def _artifacts(self) -> None:
        while True:
            if self._artifact is not None:
                run, name, sha256 = self._artifact
                await self._ask("artifact", f"/v1/runs/{id_of(run)}/artifacts/{name}", sha256)
            await asyncio.sleep(PAUSE)

    async def _ask(self, name: str, path: str, sha256: str = "") -> None:
        headers = {"Authorization": f"Bearer {self._testbed.key}"}
        limit = aiohttp.ClientTimeout(total=SECONDS)
        try:
            async with self._testbed.session.get(
                self._testbed.api.url + path, headers=headers, timeout=limit
            ) as answer:
                body = await answer.read()
        except aiohttp.ClientPayloadError:
            self.seen[name, CUT] += 1
            return
        except (aiohttp.ClientError, TimeoutError) as error:
            self.wrong.append(f"{name}: no answer: {error!r}")
            return
        self.seen[name, answer.status] += 1
        if answer.status == 200 and sha256 and hashlib.sha256(body).hexdigest() != sha256:
            self.wrong.append(f"{name}: {len(body)} bytes that are not those that were stored")
        elif answer.status == 503:
            self._refused(name, answer, body)
        elif answer.status != 200:
            self.wrong.append(f"{name}: {answer.status} {body[:300]!r}")

    def _refused(self, name: str, answer: aiohttp.ClientResponse, body: bytes) -> None:
        try:
            error = json.loads(body)["error"]
        except (ValueError, KeyError, TypeError):
            error = {}
        if not answer.headers.get("Retry-After") or error.get("code") != "unavailable":
            self.wrong.append(f"{name}: a 503 without Retry-After or code: {body[:300]!r}")
        if not error.get("message") or "Traceback" in str(error):
            self.wrong.append(f"{name}: a 503 without a plain sentence: {body[:300]!r}")
