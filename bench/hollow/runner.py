"""Runner and kubelet of all run pods on hollow nodes, simulated by one process.

`python -m bench.hollow.runner NAMESPACE` watches the pods of runs. For each running pod it claims the run
with the pod's own token, follows the run's input (`seconds` of work, `events` lines), posts a result, and
marks the pod as ended. Started by `bench.hollow.service`; ends on a signal.
"""

import asyncio
import secrets
import sys
import time
from datetime import UTC, datetime
from typing import Any

import aiohttp

from bench.hollow.nodes import WORK_SECONDS
from crds import names
from crds.kinds import POD
from crds.times import format_second, format_time
from kube import errors
from kube.client import KubeClient

CALL_TIMEOUT = aiohttp.ClientTimeout(total=30)
CALL_RETRY_SECONDS = 120.0
MAX_RETRY_DELAY_SECONDS = 2.0
DEFAULT_EVENT_COUNT = 3
RUN_POD_SELECTOR = f"{names.LABEL_COMPONENT}={names.COMPONENT_RUN}"


class ClaimLost(Exception):
    """The pod does not own the run, or no longer."""


class HollowRunner:
    """Runner of all run pods of a namespace."""

    def __init__(self, kube: KubeClient) -> None:
        self._kube = kube
        self._begun: dict[str, asyncio.Task[None]] = {}

    async def follow(self) -> None:
        """Handle every running pod, by list and watch; ends only by cancellation."""
        version = ""
        while True:
            try:
                if not version:
                    listing = await self._kube.list(POD, RUN_POD_SELECTOR)
                    version = listing.resource_version
                    for pod in listing.items:
                        self._see(pod)
                async for event in self._kube.watch(POD, version, RUN_POD_SELECTOR):
                    version = event.object["metadata"]["resourceVersion"]
                    if event.type in ("ADDED", "MODIFIED"):
                        self._see(event.object)
            except errors.KubeError as error:
                print(f"watch: {error}", flush=True)
                version = ""
                await asyncio.sleep(0.5)

    def _see(self, pod: dict[str, Any]) -> None:
        uid = pod["metadata"]["uid"]
        if pod.get("status", {}).get("phase") == "Running" and uid not in self._begun:
            self._begun[uid] = task = asyncio.ensure_future(self._play(pod))
            # An ended pod is never Running again; its late events arrive within seconds.
            task.add_done_callback(
                lambda _: asyncio.get_running_loop().call_later(60, self._begun.pop, uid, None)
            )

    async def _play(self, pod: dict[str, Any]) -> None:
        environment = {
            variable["name"]: variable.get("value", "") for variable in pod["spec"]["containers"][0]["env"]
        }
        code = 0
        try:
            # Each real pod has its own connections.
            async with aiohttp.ClientSession(timeout=CALL_TIMEOUT) as session:
                await self._run(session, environment, pod["metadata"]["uid"])
        except ClaimLost:
            code = 77
        except TimeoutError:
            print(f"{pod['metadata']['name']}: the API server does not respond", flush=True)
            code = 78
        await self._ended(pod, code)

    async def _run(self, session: aiohttp.ClientSession, environment: dict[str, str], pod_uid: str) -> None:
        pod_identity = {"pod_uid": pod_uid, "nonce": secrets.token_hex(16)}
        claim = {"protocol": 1, "run_uid": environment["CREWYARD_RUN_UID"], **pod_identity}
        claim_result = await self._call(session, environment, "claim", claim)
        while claim_result["state"] == "wait":
            await asyncio.sleep(claim_result["retry_after_seconds"])
            claim_result = await self._call(session, environment, "claim", claim)
        if claim_result["state"] != "granted":
            raise ClaimLost
        inputs, started = claim_result["input"], time.monotonic()
        count = int(inputs.get("events", DEFAULT_EVENT_COUNT))
        events = [self._line(number) for number in range(1, count + 1)]
        for first in range(0, count, 500):
            await self._call(
                session, environment, "events", {**pod_identity, "events": events[first : first + 500]}
            )
        await asyncio.sleep(float(inputs.get("seconds", WORK_SECONDS)))
        result = {
            **pod_identity,
            "outcome": "succeeded",
            "reason": None,
            "message": None,
            "duration_ms": round(1000 * (time.monotonic() - started)),
            "output": {"lines": count},
            "output_artifact": None,
            "last_event": count,
            "artifacts": {"count": 0, "bytes": 0},
        }
        await self._call(session, environment, "result", result)

    @staticmethod
    def _line(number: int) -> dict[str, Any]:
        data = {"message": f"line {number} of a hollow crew", "level": "info"}
        return {"seq": number, "type": "log", "time": format_time(datetime.now(UTC)), "data": data}

    async def _call(
        self, session: aiohttp.ClientSession, environment: dict[str, str], endpoint: str, body: dict[str, Any]
    ) -> dict[str, Any]:
        """Call the API as the runner does; retry temporary errors. Raises ClaimLost, TimeoutError."""
        runs = f"{environment['CREWYARD_INTERNAL_URL']}/internal/v1/runs"
        url = f"{runs}/{environment['CREWYARD_RUN']}/{endpoint}"
        headers = {"Authorization": f"Bearer {environment['CREWYARD_TOKEN']}"}
        pause = 0.1
        async with asyncio.timeout(CALL_RETRY_SECONDS):
            while True:
                try:
                    async with session.post(url, json=body, headers=headers) as response:
                        if response.status == 200:
                            document: dict[str, Any] = await response.json()
                            return document
                        if response.status < 500 and response.status != 429:
                            print(f"{endpoint} {response.status}: {await response.text()}", flush=True)
                            raise ClaimLost
                except aiohttp.ClientError as error:
                    print(f"{endpoint}: {error!r}", flush=True)
                await asyncio.sleep(pause)
                pause = min(2 * pause, MAX_RETRY_DELAY_SECONDS)

    async def _ended(self, pod: dict[str, Any], code: int) -> None:
        """Write the status that a kubelet writes when the runner has exited."""
        now = format_second(datetime.now(UTC))
        container = pod["spec"]["containers"][0]
        state = {"terminated": {"exitCode": code, "startedAt": now, "finishedAt": now, "reason": "Completed"}}
        status = {"name": container["name"], "image": container["image"], "ready": False, "restartCount": 0}
        body = {
            "metadata": {"uid": pod["metadata"]["uid"]},
            "status": {
                "phase": "Failed" if code else "Succeeded",
                "containerStatuses": [{**status, "imageID": "", "state": state}],
            },
        }
        try:
            await self._kube.patch(POD, pod["metadata"]["name"], body, "status")
        except errors.KubeNotFound:
            return
        except errors.KubeError as error:
            print(f"{pod['metadata']['name']}: {error}", flush=True)


async def main(namespace: str) -> None:
    """Run until terminated."""
    kube = await KubeClient.connect(namespace, "hollow-runner")
    await HollowRunner(kube).follow()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
