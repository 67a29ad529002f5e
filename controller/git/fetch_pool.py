"""Fetches in child processes, so that no repository can exhaust the controller. Called by `controller.git.client`.

A child serves one fetch and ends. The next one is started meanwhile and waits,
since its imports take longer than a fetch; one that is not needed for a while is
let go.
"""

import asyncio
import contextlib
from dataclasses import asdict
from weakref import WeakValueDictionary

from controller.git.process import Child, workplace
from controller.git.repository import Commit, Head, Remote

AT_ONCE = 2
"""Fetches at the same time: their memory together with ours stays below the pod's."""
OF_ONE_HOST = 1
"""A slow host leaves a place for the others."""
SPARE_SECONDS = 300.0


class Fetches:
    """Fetches of commits, at most two at a time, of two hosts.

    `allow` and `deny` are networks in CIDR form, `most` the bytes of a commit.
    """

    def __init__(self, allow: tuple[str, ...], deny: tuple[str, ...], most: int) -> None:
        self._limits = {"allow": list(allow), "deny": list(deny), "most": most}
        self._places = asyncio.Semaphore(AT_ONCE)
        self._hosts: WeakValueDictionary[str, asyncio.Semaphore] = WeakValueDictionary()
        self._spare: asyncio.Task[Child] | None = None
        self._letting_go: asyncio.TimerHandle | None = None
        self._closed = False

    async def commit(self, remote: Remote, head: Head, path: str, seconds: float) -> Commit:
        """Subject and tree of a commit, within `seconds` from its turn on. Raises GitProblem."""
        request = {"remote": asdict(remote), "head": asdict(head), "path": path, "seconds": seconds}
        host = self._hosts.setdefault(remote.host, asyncio.Semaphore(OF_ONE_HOST))
        async with host, self._places, workplace() as place:
            child = await self._child()
            try:
                told = await child.ask({**request, **self._limits, "place": place}, remote, seconds)
            finally:
                await child.end()
                self._prepare()
        return Commit(str(told["subject"]), str(told["tree"]))

    async def close(self) -> None:
        """Lets the waiting child go, and starts no other."""
        self._closed = True
        spare = self._let_go()
        if spare is not None:
            with contextlib.suppress(OSError, asyncio.CancelledError):
                await (await spare).end()

    async def _child(self) -> Child:
        """The waiting child, or a new one."""
        waiting, self._spare = self._spare, None
        child = await waiting if waiting is not None else None
        return child if child is not None and child.alive else await Child.start()

    def _prepare(self) -> None:
        """Starts a child for the next fetch. Not while one works: starting takes as much of the processor."""
        if self._closed or self._spare is not None:
            return
        self._spare = asyncio.create_task(self._later())
        if self._letting_go:
            self._letting_go.cancel()
        self._letting_go = asyncio.get_running_loop().call_later(SPARE_SECONDS, self._let_go)

    async def _later(self) -> Child:
        # What follows from the commit that was fetched is more urgent.
        await asyncio.sleep(0.1)
        return await Child.start()

    def _let_go(self) -> "asyncio.Task[Child] | None":
        """The waiting child is waiting no more; it ends."""
        if self._letting_go:
            self._letting_go.cancel()
        spare, self._spare = self._spare, None
        if spare is not None:
            spare.add_done_callback(_kill)
        return spare


def _kill(spare: "asyncio.Task[Child]") -> None:
    if not spare.cancelled() and spare.exception() is None:
        spare.result().kill()
