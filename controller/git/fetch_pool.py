"""Pool of child processes for fetches, so no repository can exhaust the controller.

A child serves one fetch and exits. A spare one is started in advance, since its imports take longer
than a fetch; an unused spare is killed after a while. Called by `controller.git.client`.
"""

import asyncio
import contextlib
from dataclasses import asdict
from weakref import WeakValueDictionary

from controller.git.process import GitChild, work_dir
from controller.git.repository import CommitInfo, Remote, RemoteHead

MAX_PARALLEL_FETCHES = 2
"""Their memory plus the controller's stays below the pod's limit."""
MAX_FETCHES_PER_HOST = 1
"""A slow host leaves a slot for others."""
SPARE_TTL_SECONDS = 300.0


class FetchPool:
    """Fetches commits, at most two in parallel, of two hosts.

    `allow` and `deny` are networks in CIDR form, `max_bytes` limits a commit.
    """

    def __init__(self, allow: tuple[str, ...], deny: tuple[str, ...], max_bytes: int) -> None:
        self._limits = {"allow": list(allow), "deny": list(deny), "most": max_bytes}
        self._slots = asyncio.Semaphore(MAX_PARALLEL_FETCHES)
        self._hosts: WeakValueDictionary[str, asyncio.Semaphore] = WeakValueDictionary()
        self._spare: asyncio.Task[GitChild] | None = None
        self._spare_timer: asyncio.TimerHandle | None = None
        self._closed = False

    async def commit(self, remote: Remote, head: RemoteHead, path: str, seconds: float) -> CommitInfo:
        """Return subject and tree of a commit, within `seconds` from the fetch's start. Raises GitProblem."""
        request = {"remote": asdict(remote), "head": asdict(head), "path": path, "seconds": seconds}
        host = self._hosts.setdefault(remote.host, asyncio.Semaphore(MAX_FETCHES_PER_HOST))
        async with host, self._slots, work_dir() as work_directory:
            child = await self._child()
            try:
                response = await child.request(
                    {**request, **self._limits, "place": work_directory}, remote, seconds
                )
            finally:
                await child.end()
                self._start_spare()
        return CommitInfo(str(response["subject"]), str(response["tree"]))

    async def close(self) -> None:
        """Kill the spare child, and start no other."""
        self._closed = True
        spare = self._drop_spare()
        if spare is not None:
            with contextlib.suppress(OSError, asyncio.CancelledError):
                await (await spare).end()

    async def _child(self) -> GitChild:
        """Return the spare child, or a new one."""
        spare, self._spare = self._spare, None
        child = await spare if spare is not None else None
        return child if child is not None and child.alive else await GitChild.start()

    def _start_spare(self) -> None:
        """Start a spare for the next fetch; not during a fetch: a start takes as much CPU."""
        if self._closed or self._spare is not None:
            return
        self._spare = asyncio.create_task(self._start_later())
        if self._spare_timer:
            self._spare_timer.cancel()
        self._spare_timer = asyncio.get_running_loop().call_later(SPARE_TTL_SECONDS, self._drop_spare)

    async def _start_later(self) -> GitChild:
        # The reconcile that uses the fetched commit is more urgent.
        await asyncio.sleep(0.1)
        return await GitChild.start()

    def _drop_spare(self) -> "asyncio.Task[GitChild] | None":
        """Drop the spare child and kill it."""
        if self._spare_timer:
            self._spare_timer.cancel()
        spare, self._spare = self._spare, None
        if spare is not None:
            spare.add_done_callback(_kill)
        return spare


def _kill(spare: "asyncio.Task[GitChild]") -> None:
    if not spare.cancelled() and spare.exception() is None:
        spare.result().kill()
