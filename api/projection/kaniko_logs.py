"""Copies the log of Kaniko containers into the build log while a dependencies pod runs.

Kaniko has no credential for the API, so the API server reads its log from the kubelet. Lines are numbered
from the start of the log: reconnecting stores each line once. Called by `api.maintenance.loops`.
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
from kube.client import KubeClient, Object

log = structlog.get_logger()

CONTAINER = "kaniko"
MAX_PARALLEL_LOGS = 8
MAX_LINE_BYTES = 16 * 1024
MAX_ATTEMPTS = 20
CLOSE_TIMEOUT_SECONDS = 5.0
"""Seconds to wait for cancelled followers."""


class KanikoLogs:
    """Follows the logs of Kaniko pods. `projection` connects it to the watch of pods."""

    def __init__(self, store: Store, kube: KubeClient) -> None:
        self._store = store
        self._kube = kube
        self._semaphore = asyncio.Semaphore(MAX_PARALLEL_LOGS)
        self._tasks: dict[str, tuple[str, asyncio.Task[None]]] = {}
        self.projection = Projection(
            POD,
            self._on_change,
            self._on_deleted,
            self._followed_pods,
            f"{names.LABEL_DEPLOYMENT},{names.LABEL_COMPONENT}={names.COMPONENT_BUILD}",
        )

    async def close(self) -> None:
        """Stop following all logs."""
        tasks = [task for _, task in self._tasks.values()]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=CLOSE_TIMEOUT_SECONDS)

    async def _on_change(self, item: Object) -> None:
        pod = Pod(item)
        deployment = pod.labels.get(names.LABEL_DEPLOYMENT)
        if deployment and pod.name not in self._tasks and has_log(pod):
            work = self._follow(deployment, pod.owner_uid(DEPLOYMENT), pod.name)
            self._tasks[pod.name] = (pod.uid, asyncio.create_task(work, name=f"log of {pod.name}"))

    async def _on_deleted(self, name: str, uid: str) -> None:
        followed_uid, task = self._tasks.get(name, ("", None))
        if task is not None and followed_uid == uid:
            del self._tasks[name]
            # The log stream normally ends with the pod; cancel one that does not.
            asyncio.get_running_loop().call_later(10, task.cancel)

    async def _followed_pods(self) -> dict[str, tuple[str, int]]:
        return {name: (uid, 0) for name, (uid, _) in self._tasks.items()}

    async def _follow(self, deployment: str, uid: str | None, pod: str) -> None:
        async with self._semaphore:
            for attempt in range(MAX_ATTEMPTS):
                try:
                    key = await self._store.build_logs.key(deployment, uid) if uid else deployment
                    await self._copy(key, pod)
                    return
                except errors.KubeNotFound:
                    return
                except (errors.KubeError, StoreUnavailable) as error:
                    log.warning("build log interrupted", pod=pod, error=str(error))
                await asyncio.sleep(min(0.2 * 2**attempt, 10))

    async def _copy(self, key: str, pod: str) -> None:
        line_count = 0
        async for batch in split_lines(self._kube.pod_log(pod, CONTAINER, follow=True)):
            chunks = [Chunk(line_count + index, line) for index, line in enumerate(batch, 1)]
            line_count += len(batch)
            await self._store.build_logs.append(key, pod, CONTAINER, chunks)


def has_log(pod: Pod) -> bool:
    """Return whether the pod has a Kaniko container whose log can be read."""
    for status in pod.containers:
        if status.get("name") == CONTAINER:
            state = status.get("state") or {}
            return "running" in state or "terminated" in state
    return False


async def split_lines(chunks: AsyncIterator[bytes]) -> AsyncIterator[list[str]]:
    """Yield batches of complete lines. Cut long lines; the last line may lack its newline."""
    remainder = b""
    async for chunk in chunks:
        *complete, remainder = (remainder + chunk).split(b"\n")
        # A cut line still counts as one: line numbers identify the lines already stored.
        remainder = remainder[:MAX_LINE_BYTES]
        if complete:
            yield [line[:MAX_LINE_BYTES].decode(errors="replace") + "\n" for line in complete]
    if remainder:
        yield [remainder.decode(errors="replace") + "\n"]
