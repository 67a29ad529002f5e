"""Copies the log of the container that installs dependencies into the build log while its pod runs.

That container, Kaniko's or the base image's, has no credential for the API, so the API server reads its log
from the kubelet. Lines are numbered from the start of the log: reconnecting stores each line once. Called by
`api.maintenance.loops`.
"""

import asyncio
from collections.abc import AsyncIterator

import structlog

from api.projection.deployment_rows import current_row
from api.projection.list_watch import Projection
from api.store.logs.build_logs import Chunk
from api.store.store import Store
from crds import names
from crds.kinds import DEPLOYMENT, POD
from crds.objects import Pod
from kube import errors
from kube.client import KubeClient, Object

log = structlog.get_logger()

CONTAINERS = ("kaniko", "install")
"""A dependencies pod has one of them."""
MAX_PARALLEL_LOGS = 8
MAX_LINE_BYTES = 16 * 1024
FIRST_PAUSE_SECONDS = 0.2
MAX_PAUSE_SECONDS = 10.0
"""Pauses before a log is read again: doubled each time, until a line is new."""
CLOSE_TIMEOUT_SECONDS = 5.0
"""Seconds to wait for cancelled followers."""


class KanikoLogs:
    """Follows the logs of dependencies pods. `projection` connects it to the watch of pods."""

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
        container = container_with_log(pod)
        if deployment and pod.name not in self._tasks and container:
            work = self._follow(deployment, pod.owner_uid(DEPLOYMENT), pod.name, container)
            self._tasks[pod.name] = (pod.uid, asyncio.create_task(work, name=f"log of {pod.name}"))

    async def _on_deleted(self, name: str, uid: str) -> None:
        followed_uid, task = self._tasks.get(name, ("", None))
        if task is not None and followed_uid == uid:
            del self._tasks[name]
            # The log stream normally ends with the pod; cancel one that does not.
            asyncio.get_running_loop().call_later(10, task.cancel)

    async def _followed_pods(self) -> dict[str, tuple[str, int]]:
        return {name: (uid, 0) for name, (uid, _) in self._tasks.items()}

    async def _follow(self, deployment: str, uid: str | None, pod: str, container: str) -> None:
        pause, stored = FIRST_PAUSE_SECONDS, 0
        while True:
            try:
                async with self._semaphore:
                    key = await self._store.build_logs.key(deployment, uid) if uid else deployment
                    async for line_count in self._copy(key, pod, container):
                        if line_count > stored:
                            pause, stored = FIRST_PAUSE_SECONDS, line_count
                        # Check after the append: deleting the Deployment from here on deletes its log too.
                        if uid and await current_row(self._store, self._kube, deployment, uid) is None:
                            await self._store.expired_records.note_build_log(key)
                            break
                return
            except errors.KubeNotFound:
                return
            except Exception as error:
                log.warning("build log interrupted", pod=pod, error=str(error) or type(error).__name__)
            # Outside the semaphore: logs that cannot be read must not block the others.
            await asyncio.sleep(pause)
            pause = min(2 * pause, MAX_PAUSE_SECONDS)

    async def _copy(self, key: str, pod: str, container: str) -> AsyncIterator[int]:
        """Store the lines of a log; yield their number after each batch."""
        line_count = 0
        async for batch in split_lines(self._kube.pod_log(pod, container, follow=True)):
            chunks = [Chunk(line_count + index, line) for index, line in enumerate(batch, 1)]
            line_count += len(batch)
            await self._store.build_logs.append(key, pod, container, chunks)
            yield line_count


def container_with_log(pod: Pod) -> str:
    """Return the container that installs dependencies, once its log can be read; else an empty text."""
    for status in pod.containers:
        state = status.get("state") or {}
        if status.get("name") in CONTAINERS and ("running" in state or "terminated" in state):
            return str(status["name"])
    return ""


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
