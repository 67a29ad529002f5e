"""A controller in this process, with and without Kopf, on one namespace; and the API server's two writes."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

import pytest

from controller.build_proof.proof import prove
from controller.config import ControllerConfig, Timing
from controller.deployment.reported_results import ReportedResult
from controller.pods.ceilings import AllowedNodes
from controller.pods.placement import NodePlacements
from controller.process import ControllerProcess
from controller.runtime import event_map
from controller.runtime.recorder import COMPONENT
from crds import conditions, kinds
from crds.kinds import Kind
from crds.objects import Deployment, Pod, Project, Run
from crds.times import format_time
from kube import errors
from kube.client import KubeClient

IMAGE = "registry.crewyard.internal:5000/library/python:3.11-slim"
"""Present on the node; it has no runner, so its pods exit immediately."""
FAST = Timing(
    resync=1.0,
    poll=1,
    start_timeout=600,
    image_pull=600,
    build_retry=0.2,
    coalescing_window=0.0,
    prune_settle=1.5,
)
"""Start timeouts stay long: a pod without image must outlast a test on a busy machine."""
WAIT_SECONDS = 400.0
"""Upper bound of a wait: a pod that starts in seconds takes minutes on a busy machine."""


@dataclass
class ControllerTestbed:
    """A namespace with helpers that create and change its objects."""

    kube: KubeClient
    config: ControllerConfig
    process: ControllerProcess | None = None

    async def until(
        self, kind: Kind, name: str, holds: Callable[[dict[str, Any]], Any], seconds: float = WAIT_SECONDS
    ) -> dict[str, Any]:
        """Return the object once `holds` is true for it."""
        obj: dict[str, Any] | None = None
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while True:
                    obj = await self.kube.get(kind, name)
                    if obj is not None and holds(obj):
                        return obj
                    await asyncio.sleep(0.05)
        raise AssertionError(f"{kind.name} {name} stayed {json.dumps((obj or {}).get('status'), indent=1)}")

    async def settle(self) -> None:
        """Wait until the controller has reconciled all objects as they are now, and what follows."""
        assert self.process is not None
        await settle(self.process)

    async def project(self, name: str = "demo", **spec: Any) -> Project:
        """Create a Project."""
        return Project(await self.kube.create(kinds.PROJECT, {"metadata": {"name": name}, "spec": spec}))

    async def deployment(
        self,
        name: str,
        project: str = "demo",
        plan: dict[str, Any] | None = None,
        image: str = IMAGE,
        proven: bool = True,
        **spec: Any,
    ) -> Deployment:
        """Create a built Deployment."""
        body = {"project": project, "source": {"archive": {"upload": "upl_1"}}, **spec}
        created = await self.kube.create(kinds.DEPLOYMENT, {"metadata": {"name": name}, "spec": body})
        return Deployment(await self.mark_built(created["metadata"]["name"], plan, image, proven))

    async def mark_built(
        self, name: str, plan: dict[str, Any] | None = None, image: str = IMAGE, proven: bool = True
    ) -> dict[str, Any]:
        """Write the status of a finished build; without `proven`, as an account without the key would."""
        now = format_time(datetime.now(UTC))
        built = {
            "type": "Built",
            "status": "True",
            "reason": "Built",
            "message": "",
            "lastTransitionTime": now,
        }
        status: dict[str, Any] = {"image": image, "plan": plan or {}, "conditions": [built]}
        if proven:
            found = Deployment(await self.until(kinds.DEPLOYMENT, name, lambda _: True))
            whole = {**found.status, **status}
            status["proof"] = prove(self.config.token_key, self.config.namespace, found, "pod", whole)
        return await self.kube.patch(kinds.DEPLOYMENT, name, {"status": status}, "status")

    async def wait_active(self, name: str, project: str = "demo") -> None:
        """Wait until a Deployment is active."""
        await self.until(kinds.PROJECT, project, lambda o: o["status"].get("activeDeployment") == name)
        await self.until(kinds.DEPLOYMENT, name, lambda o: o["status"].get("phase") == "Active")

    async def run(self, name: str, **spec: Any) -> Run:
        """Create a Run as kubectl does."""
        return Run(await self.kube.create(kinds.RUN, {"metadata": {"name": name}, "spec": spec}))

    async def claim(self, name: str, uid: str | None = None) -> None:
        """Grant a claim as the API server does, to the existing pod or to the given uid."""
        if uid is None:
            uid = (await self.until(kinds.POD, name, lambda _: True))["metadata"]["uid"]
        claim = {"podUid": uid, "time": format_time(datetime.now(UTC))}
        await self.kube.patch(kinds.RUN, name, {"status": {"claim": claim}}, "status")

    async def report(self, name: str, outcome: str, **more: Any) -> None:
        """Write a result as the API server does."""
        result = {"outcome": outcome, "durationMs": 1234, **more}
        await self.kube.patch(kinds.RUN, name, {"status": {"result": result}}, "status")

    async def set_pod_status(self, pod: str, uid: str, status: dict[str, Any]) -> None:
        """Patch the status of the pod with this uid as the kubelet would; call again until it is observed.

        The kubelet overwrites it. Ignore a deleted pod and another pod of that name.
        """
        body = {"metadata": {"uid": uid}, "status": status}
        with contextlib.suppress(errors.Invalid, errors.KubeNotFound):
            await self.kube.patch(kinds.POD, pod, body, "status")

    async def start_pod(self, pod: Pod, container: str, *processes: ControllerProcess) -> None:
        """Play the kubelet: show that a pod runs, after the scheduler's write, which would race the next.

        Return when the controllers have seen it: they can give the pod to a run or a build then.
        """
        await self.until(kinds.POD, pod.name, lambda o: conditions.find(Pod(o).conditions, "PodScheduled"))
        now = format_time(pod.created)
        met = {"status": "True", "lastTransitionTime": now}
        running = {
            "phase": "Running",
            "conditions": [{"type": "PodScheduled", **met}, {"type": "Ready", **met}],
            "containerStatuses": [container_status(container, running={"startedAt": now})],
        }
        await self.set_pod_status(pod.name, pod.uid, running)
        assert processes or self.process is not None
        async with asyncio.timeout(WAIT_SECONDS):
            for process in processes or (self.process,):
                while (
                    not (seen := process.own.cache.get(kinds.POD, pod.name)) or Pod(seen).phase != "Running"
                ):
                    await asyncio.sleep(0.05)

    async def wait_ended(self, name: str, seconds: float = WAIT_SECONDS) -> Run:
        """Return the Run once it has ended."""
        return Run(await self.until(kinds.RUN, name, lambda o: Run(o).ended, seconds))


def container_status(name: str, **state: Any) -> dict[str, Any]:
    """Return the status of a pod's only container."""
    return {"name": name, "state": state, "image": IMAGE, "imageID": "", "ready": False, "restartCount": 0}


def condition(obj: dict[str, Any] | Any, kind: str) -> tuple[str, str] | None:
    """Return status and reason of a condition, or None."""
    raw = obj if isinstance(obj, dict) else obj.raw
    for item in raw["status"].get("conditions", ()):
        if item["type"] == kind:
            return item["status"], item["reason"]
    return None


def settings(namespace: str, **changes: Any) -> ControllerConfig:
    """Return the settings of a test."""
    base = ControllerConfig(
        namespace=namespace,
        internal_url="http://crewyard-api.crewyard-system.svc:8080",
        token_key="a key for tests only",
        service_image=IMAGE,
        kaniko_image="registry.crewyard.internal:5000/kaniko/executor:v1.24.0",
        base_images={"3.11": IMAGE},
        registry="registry.crewyard.internal:5000",
        registry_insecure=True,
        net_allow=("127.0.0.0/8",),
        placements=NodePlacements(allowed=AllowedNodes({"crewyard.dev/none": ("here",)})),
        timing=FAST,
    )
    return replace(base, **changes)


def report_result(
    process: ControllerProcess, deployment: str, uid: str, pod_uid: str, result: dict[str, Any]
) -> None:
    """Report the result of a build as its pod does: the route stores it and enqueues the Deployment."""
    reported = ReportedResult("assemble", result, datetime.now(UTC).timestamp())
    process.shared.reported_results.put(uid, pod_uid, reported)
    process.own.queues.add(event_map.deployment(deployment))


@contextlib.asynccontextmanager
async def controller(kube: KubeClient, config: ControllerConfig) -> AsyncIterator[ControllerProcess]:
    """Run a controller while the context is open."""
    own_client = await KubeClient.connect(config.namespace, COMPONENT)
    process, stop = ControllerProcess(own_client, config), asyncio.Event()
    work = asyncio.create_task(process.run(stop))
    try:
        yield process
    finally:
        stop.set()
        await asyncio.wait_for(work, WAIT_SECONDS)
        await own_client.close()


async def settle(process: ControllerProcess) -> None:
    """List all objects and wait until no key is ready or active; twice, for what the first has written."""
    own = process.own
    queues = (own.queues.main, own.queues.sources, own.queues.reports, own.queues.attestations)
    async with asyncio.timeout(WAIT_SECONDS):
        for _ in range(2):
            await own.resync.list_all()
            while any(queue._ready or queue._active for queue in queues):
                await asyncio.sleep(0.01)


both_triggers = pytest.mark.parametrize("trigger", ["kopf", "resync"], indirect=True)
"""For tests whose way differs most between the two: `make test` runs them with both."""


@pytest.fixture(params=["kopf", pytest.param("resync", marks=pytest.mark.nightly)])
def trigger(request: pytest.FixtureRequest) -> str:
    """Return the trigger of reconciles: Kopf, or the resync alone."""
    return str(request.param)


@pytest.fixture
async def testbed(kube: KubeClient, trigger: str) -> AsyncIterator[ControllerTestbed]:
    """A namespace with a controller."""
    config = settings(kube.namespace, kopf=trigger == "kopf")
    async with controller(kube, config) as process:
        yield ControllerTestbed(kube, config, process)


Check = Callable[[], Awaitable[None]]
