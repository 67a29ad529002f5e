"""Kaniko's container log, followed into the build log while a dependencies pod runs.

Kaniko itself has no credential and knows nothing of us, so the facade reads its
log from the kubelet. Lines are numbered from the log's start: following it again
after a break stores each once. Called by `api.maintenance.loops`.
"""

import asyncio
from collections.abc import AsyncIterator

import structlog

from api.projection.list_watch import Projection
from api.store.errors import StoreUnavailable
from api.store.logs.build_logs import Chunk
from api.store.store import Store
from crds import names
from crds.kinds import DEPLOYMENT, POD
from crds.objects import Pod
from kube import errors
from kube.client import Kube, Object

log = structlog.get_logger()

CONTAINER = "kaniko"
AT_ONCE = 8
MAX_LINE = 16 * 1024
ATTEMPTS = 20
CLOSE = 5.0
"""Seconds that following may take to stop."""


class KanikoLogs:
    """The logs being followed. `projection` is what the watch of pods calls."""

    def __init__(self, store: Store, kube: Kube) -> None:
        self._store = store
        self._kube = kube
        self._turns = asyncio.Semaphore(AT_ONCE)
        self._tasks: dict[str, tuple[str, asyncio.Task[None]]] = {}
        self.projection = Projection(
            POD,
            self._apply,
            self._gone,
            self._known,
            f"{names.LABEL_DEPLOYMENT},{names.LABEL_COMPONENT}={names.COMPONENT_BUILD}",
        )

    async def close(self) -> None:
        """Stops following."""
        tasks = [task for _, task in self._tasks.values()]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=CLOSE)

    async def _apply(self, item: Object) -> None:
        pod = Pod(item)
        deployment = pod.labels.get(names.LABEL_DEPLOYMENT)
        if deployment and pod.name not in self._tasks and started(pod):
            work = self._follow(deployment, pod.owner_uid(DEPLOYMENT), pod.name)
            self._tasks[pod.name] = (pod.uid, asyncio.create_task(work, name=f"log of {pod.name}"))

    async def _gone(self, name: str, uid: str) -> None:
        known, task = self._tasks.get(name, ("", None))
        if task is not None and known == uid:
            del self._tasks[name]
            # Its log ends by itself very soon; a stream that does not is cut.
            asyncio.get_running_loop().call_later(10, task.cancel)

    async def _known(self) -> dict[str, tuple[str, int]]:
        return {name: (uid, 0) for name, (uid, _) in self._tasks.items()}

    async def _follow(self, deployment: str, uid: str | None, pod: str) -> None:
        async with self._turns:
            for attempt in range(ATTEMPTS):
                try:
                    key = await self._store.buildlogs.key(deployment, uid) if uid else deployment
                    await self._copy(key, pod)
                    return
                except errors.NotFound:
                    return
                except (errors.KubeError, StoreUnavailable) as error:
                    log.warning("build log broke", pod=pod, error=str(error))
                await asyncio.sleep(min(0.2 * 2**attempt, 10))

    async def _copy(self, key: str, pod: str) -> None:
        count = 0
        async for batch in lines(self._kube.pod_log(pod, CONTAINER, follow=True)):
            chunks = [Chunk(count + index, line) for index, line in enumerate(batch, 1)]
            count += len(batch)
            await self._store.buildlogs.append(key, pod, CONTAINER, chunks)


def started(pod: Pod) -> bool:
    """Whether the pod has a Kaniko container whose log can be read."""
    for status in pod.containers:
        if status.get("name") == CONTAINER:
            state = status.get("state") or {}
            return "running" in state or "terminated" in state
    return False


async def lines(chunks: AsyncIterator[bytes]) -> AsyncIterator[list[str]]:
    """The lines of a log as they become whole, in batches; a long one is cut, the last may lack its end."""
    rest = b""
    async for chunk in chunks:
        *whole, rest = (rest + chunk).split(b"\n")
        # One line stays one, however it comes: its number is what tells it from those that are stored.
        rest = rest[:MAX_LINE]
        if whole:
            yield [line[:MAX_LINE].decode(errors="replace") + "\n" for line in whole]
    if rest:
        yield [rest.decode(errors="replace") + "\n"]
