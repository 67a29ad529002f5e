"""A simulated runner pod, without a controller: it calls the API server as a runner does.

Called by the scenes whose faults lie in what a runner sends and when.
"""

import secrets
import time
from dataclasses import dataclass, field
from typing import Any

from crds import pod_tokens
from crds.kinds import RUN
from crds.names import name_of
from tests.campaign.testbed import CampaignTestbed


@dataclass
class FakeRunner:
    """One run and its one pod."""

    testbed: CampaignTestbed
    run: str
    uid: str
    pod: str = field(default_factory=lambda: f"pod-{secrets.token_hex(4)}")
    nonce: str = field(default_factory=lambda: secrets.token_hex(8))

    @classmethod
    async def create(cls, testbed: CampaignTestbed) -> "FakeRunner":
        """Request a run and claim it."""
        made = await testbed.ask("POST", "/v1/runs", {"deployment": testbed.project})
        raw = await testbed.kube.get(RUN, name_of(made["id"]))
        assert raw is not None
        found = cls(testbed, name_of(made["id"]), raw["metadata"]["uid"])
        assert await found.claim(found.nonce) == "granted"
        return found

    async def call(self, what: str, body: Any) -> tuple[int, Any]:
        """Status and body of one call with the run's token."""
        key = self.testbed.api.settings["CREWYARD_TOKEN_KEY"]
        token = pod_tokens.mint(
            key, "run", self.testbed.namespace, self.run, self.uid, int(time.time()) + 600
        )
        message = {"pod_uid": self.pod, "nonce": self.nonce, **body}
        path = f"/internal/v1/runs/{self.run}/{what}"
        return await self.testbed.call("POST", path, message, Authorization=f"Bearer {token}")

    async def claim(self, nonce: str) -> str:
        """Return the claim state for a process of the pod with this nonce."""
        body = {"protocol": 1, "run_uid": self.uid, "nonce": nonce}
        status, found = await self.call("claim", body)
        assert status == 200, found
        return str(found["state"])

    async def post_events(self, *numbers: int) -> int:
        """Events of these numbers; the greatest one acknowledged."""
        events = [
            {"seq": number, "type": "campaign.step", "time": None, "data": {"number": number}}
            for number in numbers
        ]
        status, found = await self.call("events", {"events": events})
        assert status == 200, found
        return int(found["acknowledged"])

    async def post_result(self, last_event: int, artifacts: int) -> int:
        """A success that tells of so many events and artifacts; the answer's status."""
        body = {
            "outcome": "succeeded", "reason": None, "message": None, "duration_ms": 5, "output": None,
            "output_artifact": None, "last_event": last_event,
            "artifacts": {"count": artifacts, "bytes": 10 * artifacts},
        }  # fmt: skip
        return (await self.call("result", body))[0]
