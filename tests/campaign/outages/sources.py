"""Sources of crews that a test uploads, and what lies in a store of blobs. Called by the tests of outages."""

import asyncio
import hashlib
import random
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp

from tests.campaign.checks.observed import ApiRunRecord
from tests.campaign.image import CREW
from tests.campaign.testbed import CampaignTestbed
from tests.e2e.upload_project import archive

BALLAST = 1_000_000
STORED = (200, 201, 204)
"""What an upload is answered that is there."""


def source(mark: str) -> bytes:
    """An archive of the campaign's crew, another one for each mark, too large for one packet."""
    ballast = random.Random(mark).randbytes(BALLAST)
    return archive({"main.py": (CREW / "main.py").read_bytes(), "mark.txt": mark, "ballast.bin": ballast})


@dataclass
class UploadedSource:
    """One archive on its way. `statuses` are the answers to its bytes, 0 where there was none."""

    testbed: CampaignTestbed
    content: bytes
    ticket: dict[str, Any]
    statuses: list[int]

    @classmethod
    async def announced(cls, testbed: CampaignTestbed, content: bytes, project: str = "") -> "UploadedSource":
        """An upload that may be sent."""
        sha256 = hashlib.sha256(content).hexdigest()
        body = {"project": project or testbed.project, "size": len(content), "sha256": sha256}
        return cls(testbed, content, await testbed.ask("POST", "/v1/uploads", body), [])

    async def send(self) -> int:
        """The status of one try to send it."""
        try:
            async with self.testbed.session.put(
                self.ticket["upload_url"], data=self.content, headers=self.ticket["headers"]
            ) as answer:
                await answer.read()
                self.statuses.append(answer.status)
        except (aiohttp.ClientError, TimeoutError):
            self.statuses.append(0)
        return self.statuses[-1]

    async def arrive(self, seconds: float) -> None:
        """Send it, again and again, until it is stored. Raises TimeoutError."""
        async with asyncio.timeout(seconds):
            while await self.send() not in STORED:
                await asyncio.sleep(1)

    @property
    def odd(self) -> list[int]:
        """Unexpected statuses: neither stored nor retryable."""
        return [status for status in self.statuses if status not in (0, *STORED, 408, 503)]

    async def deploy(self, project: str = "") -> str:
        """A deployment of it; its id."""
        body = {
            "project": project or self.testbed.project,
            "build_context_url": self.ticket["build_context_url"],
        }
        return str((await self.testbed.ask("POST", "/v1/deployments", body))["id"])


def disagreement(blobs: Path, runs: dict[str, ApiRunRecord]) -> list[str]:
    """Return the differences of files below `blobs` and the API's artifacts: torn, missing or orphaned."""
    found = []
    there: dict[str, set[str]] = {}
    for path in blobs.rglob("*"):
        parts = path.relative_to(blobs).parts
        if not path.is_file() or "runs" not in parts or any(part.startswith(".") for part in parts):
            continue
        name, run = path.name, path.parent.name
        expected = name.partition("-")[0]
        if "#" in name:
            found.append(f"{run}: {name} was started and left")
        elif hashlib.sha256(path.read_bytes()).hexdigest() != expected:
            found.append(f"{run}: {name} is torn")
        else:
            there.setdefault(run, set()).add(expected)
    for run, seen in runs.items():
        kept = set(seen.artifacts.values())
        if there.get(run, set()) != kept:
            found.append(
                f"{run}: {len(there.get(run, ()))} files where the API tells of {len(kept)} artifacts"
            )
    return found
