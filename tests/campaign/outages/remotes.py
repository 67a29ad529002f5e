"""Projects that follow repositories, with their conditions. Called by the tests of outages."""

import asyncio
import secrets
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from crds import conditions
from crds.kinds import DEPLOYMENT, POD, PROJECT
from crds.names import ANNOTATION_REQUESTED_AT, LABEL_DEPLOYMENT
from crds.times import format_time
from tests.campaign.testbed import PLAN, CampaignTestbed
from tests.testbed.git_server import Repository

CODE = "def kickoff():\n    return {variant!r}\n"
SECONDS = 180.0


@dataclass
class GitFollowingProject:
    """One project that follows a repository at `url`."""

    testbed: CampaignTestbed
    name: str
    repository: Repository
    url: str
    commits: list[str] = field(default_factory=list)

    async def create(self, interval: str) -> None:
        """Create the project with this poll interval."""
        git = {"url": self.url, "ref": {"branch": "main"}, "interval": interval}
        await self.testbed.ask("POST", "/v1/projects", {"name": self.name, "source": {"git": git}})

    async def commit(self, variant: str) -> str:
        """A commit of that variant's tree; its id."""
        files = {"main.py": CODE.format(variant=variant)}
        text = f"Say {variant}, {secrets.token_hex(4)}"
        sha = await asyncio.to_thread(self.repository.commit, files, text)
        self.commits.append(sha)
        return sha

    async def request_poll(self) -> None:
        """Request a poll, as a webhook does."""
        asked = {"metadata": {"annotations": {ANNOTATION_REQUESTED_AT: format_time(datetime.now(UTC))}}}
        await self.testbed.kube.patch(PROJECT, self.name, asked)

    async def ready_condition(self) -> tuple[str, str, str]:
        """Status, reason and message of the project's condition Ready."""
        found = await self.testbed.kube.get(PROJECT, self.name)
        one = conditions.find(((found or {}).get("status") or {}).get("conditions") or [], conditions.READY)
        return tuple(str((one or {}).get(key) or "") for key in ("status", "reason", "message"))

    async def active_commit(self) -> str:
        """The commit of the active deployment, for the API; empty where there is none."""
        shown = await self.testbed.ask("GET", f"/v1/projects/{self.name}")
        if not shown["active_deployment_id"]:
            return ""
        return str(
            (await self.testbed.ask("GET", f"/v1/deployments/{shown['active_deployment_id']}"))["git_sha"]
        )

    async def deployment(self, sha: str) -> dict[str, Any] | None:
        """The Deployment object of a commit, the last attempt; None where there is none."""
        listed = (await self.testbed.kube.list(DEPLOYMENT, fields=f"spec.project={self.name}")).items
        mine = [one for one in listed if one["spec"].get("gitSha") == sha]
        return max(mine, key=lambda one: int(one["spec"].get("attempt") or 1), default=None)

    async def play(self, sha: str, seconds: float = SECONDS) -> None:
        """Simulate the build of a commit with the test bed's image. Raises TimeoutError."""
        async with asyncio.timeout(seconds):
            while True:
                found = await self.deployment(sha)
                if found is not None and (found.get("status") or {}).get("sourceKey"):
                    break
                await asyncio.sleep(0.1)
        built = {"type": "Built", "status": "True", "reason": "Built", "message": ""}
        built["lastTransitionTime"] = format_time(datetime.now(UTC))
        status = {"image": self.testbed.image, "plan": PLAN, "conditions": [built]}
        name = found["metadata"]["name"]
        await self.testbed.kube.patch(DEPLOYMENT, name, {"status": status}, "status")
        # The product's own attempt at it is not waited for.
        for pod in (await self.testbed.kube.list(POD, f"{LABEL_DEPLOYMENT}={name}")).items:
            await self.testbed.kube.delete(POD, pod["metadata"]["name"], grace_seconds=0)

    async def wait_fetched(self, sha: str, seconds: float = SECONDS) -> None:
        """Wait until a build pod has read that commit: it needs dependencies then. Raises TimeoutError."""
        async with asyncio.timeout(seconds):
            while True:
                found = await self.deployment(sha)
                name = found["metadata"]["name"] if found else ""
                if name and await self.testbed.kube.get(POD, f"{name}-d1") is not None:
                    return
                await asyncio.sleep(0.2)

    async def wait_reason(self, *reasons: str, seconds: float = SECONDS) -> str:
        """Return the message once the project is not Ready for one of these reasons. Raises TimeoutError."""
        async with asyncio.timeout(seconds):
            while True:
                status, reason, message = await self.ready_condition()
                if status == "False" and reason in reasons:
                    return message
                await asyncio.sleep(0.2)

    async def wait_active(self, sha: str, seconds: float = SECONDS) -> None:
        """Wait until that commit is the active one. Raises TimeoutError."""
        async with asyncio.timeout(seconds):
            while await self.active_commit() != sha:
                await asyncio.sleep(0.2)

    async def wait_finished(self, sha: str, seconds: float = SECONDS) -> dict[str, Any]:
        """The status of a commit's Deployment once it is built or has failed. Raises TimeoutError."""
        async with asyncio.timeout(seconds):
            while True:
                status = ((await self.deployment(sha)) or {}).get("status") or {}
                if status.get("phase") in ("Active", "Superseded", "Failed"):
                    return dict(status)
                await asyncio.sleep(0.2)
