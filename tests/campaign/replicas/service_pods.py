"""The pods of an installation with replicas: who leads, kill one, wait for its successor.

Called by `tests.campaign.replicas.test_replicas`.
"""

import asyncio
import contextlib
import random
import time
from typing import Any

from controller.leader_election import LEASE_NAME
from crds.kinds import LEASE, POD
from kube import errors
from kube.client import KubeClient
from tests.campaign.installed_service import SYSTEM
from tests.campaign.pods import kill

READY_SECONDS = 240.0
"""Until a new pod is ready, on a slow machine that does much else."""
PAUSE_SECONDS = 0.05
REPLICAS = 2


class ServicePods:
    """`crews` is a client of the crews' namespace, where the Lease is; `system` one of the service's."""

    def __init__(self, crews: KubeClient, system: KubeClient) -> None:
        self._crews, self._system = crews, system
        self.takeovers: list[float] = []
        """Seconds from each kill of a leader until another one led."""

    @classmethod
    async def connect(cls, crews: KubeClient) -> "ServicePods":
        """Open the second client; `close` closes it."""
        return cls(crews, await KubeClient.connect(SYSTEM, "campaign"))

    async def close(self) -> None:
        """Close the client of the service's namespace."""
        await self._system.close()

    async def of(self, component: str) -> list[dict[str, Any]]:
        """The pods of a component that are not being deleted."""
        labels = f"app.kubernetes.io/name=crewyard,app.kubernetes.io/component={component}"
        found = (await self._system.list(POD, labels)).items
        return [raw for raw in found if not raw["metadata"].get("deletionTimestamp")]

    async def kill(self, raw: dict[str, Any], component: str) -> None:
        """SIGKILL its process, and delete the pod: a new one comes without the kubelet's back-off."""
        uid = raw["metadata"]["uid"]
        assert await asyncio.to_thread(kill, uid, component.encode()), f"{component}: no process of {uid}"
        with contextlib.suppress(errors.KubeConflict):
            await self._system.delete(POD, raw["metadata"]["name"], uid=uid, grace_seconds=0)

    async def wait_ready(self, component: str, count: int = REPLICAS) -> list[dict[str, Any]]:
        """The ready pods, once there are so many. Raises TimeoutError."""
        async with asyncio.timeout(READY_SECONDS):
            while len(ready := [raw for raw in await self.of(component) if is_ready(raw)]) < count:
                await asyncio.sleep(4 * PAUSE_SECONDS)
        return ready

    async def kill_api(self, chance: random.Random) -> None:
        """Kill one ready API server; return once two are ready."""
        await self.kill(chance.choice(await self.wait_ready("api", 1)), "api")
        await self.wait_ready("api")

    async def holder(self) -> str:
        """The identity in the Lease: a pod's name, and a process."""
        lease = await self._crews.get(LEASE, LEASE_NAME)
        return str(((lease or {}).get("spec") or {}).get("holderIdentity") or "")

    async def kill_leader(self) -> None:
        """Kill the controller that leads; return once another one does."""
        async with asyncio.timeout(READY_SECONDS):
            while not (leading := await self._leader()):
                await asyncio.sleep(PAUSE_SECONDS)
            before, raw = leading
            await self.kill(raw, "controller")
            begin = time.monotonic()
            while await self.holder() in ("", before):
                await asyncio.sleep(PAUSE_SECONDS)
        self.takeovers.append(time.monotonic() - begin)

    async def _leader(self) -> tuple[str, dict[str, Any]] | None:
        """The holder of the Lease with its pod; None while it has none."""
        holder = await self.holder()
        for raw in await self.of("controller"):
            if holder.startswith(f"{raw['metadata']['name']}-"):
                return holder, raw
        return None


def is_ready(raw: dict[str, Any]) -> bool:
    """Whether a pod is ready. Pure."""
    conditions = (raw.get("status") or {}).get("conditions") or ()
    return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)
