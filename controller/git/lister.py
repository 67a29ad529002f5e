"""Pool of child processes for listings: SSH, and long ones over HTTP. Called by `controller.git.client`.

Besides the SSH handshake, starting a process costs most. So a child that listed over SSH stays idle
for the next request to the same host, and for no other: a compromised child must not see keys of
other hosts.
"""

import asyncio
from dataclasses import asdict
from weakref import WeakValueDictionary

from controller.git.process import GitChild, work_dir
from controller.git.repository import Remote, RemoteHead

MAX_PARALLEL_LISTINGS = 4
MAX_LISTINGS_PER_HOST = 2
"""A slow host leaves slots for others."""
MAX_IDLE_CHILDREN = 2
IDLE_TTL_SECONDS = 180.0
MAX_REQUESTS_PER_CHILD = 100
"""Bounds the memory growth of one child."""


class ListingPool:
    """Lists heads, four remotes in parallel. `allow` and `deny` are networks in CIDR form."""

    def __init__(self, allow: tuple[str, ...], deny: tuple[str, ...]) -> None:
        self._network = {"allow": list(allow), "deny": list(deny)}
        self._slots = asyncio.Semaphore(MAX_PARALLEL_LISTINGS)
        self._hosts: WeakValueDictionary[str, asyncio.Semaphore] = WeakValueDictionary()
        self._idle: dict[str, tuple[GitChild, asyncio.TimerHandle]] = {}
        self._closed = False

    async def head(self, remote: Remote, ref: dict[str, str], seconds: float) -> RemoteHead:
        """Return the head of `ref`, within `seconds` from the start of the listing. Raises GitProblem."""
        request = {"remote": asdict(remote), "ref": ref, "seconds": seconds, **self._network}
        host = self._hosts.setdefault(remote.host, asyncio.Semaphore(MAX_LISTINGS_PER_HOST))
        async with host, self._slots, work_dir() as work_directory:
            child, answered = await self._child(remote), False
            try:
                response = await child.request({**request, "place": work_directory}, remote, seconds)
                answered = True
            finally:
                # Failed listings are rare, so their child is not kept either.
                if not (answered and remote.ssh and self._keep_idle(remote.host, child)):
                    await child.end()
        return RemoteHead(str(response["head"]["name"]), str(response["head"]["commit"]))

    async def close(self) -> None:
        """Kill idle children, and keep no other."""
        self._closed = True
        for host in list(self._idle):
            child = self._pop_idle(host)
            if child is not None:
                await child.end()

    async def _child(self, remote: Remote) -> GitChild:
        idle = self._pop_idle(remote.host) if remote.ssh else None
        return idle if idle is not None and idle.alive else await GitChild.start()

    def _keep_idle(self, host: str, child: GitChild) -> bool:
        """Keep `child` idle for a while and drop the longest idle one; return False if it is not kept."""
        if self._closed or host in self._idle or not child.alive or child.requests >= MAX_REQUESTS_PER_CHILD:
            return False
        if len(self._idle) >= MAX_IDLE_CHILDREN:
            self._kill_idle(next(iter(self._idle)))
        timer = asyncio.get_running_loop().call_later(IDLE_TTL_SECONDS, self._kill_idle, host)
        self._idle[host] = (child, timer)
        return True

    def _pop_idle(self, host: str) -> GitChild | None:
        child, timer = self._idle.pop(host, (None, None))
        if timer:
            timer.cancel()
        return child

    def _kill_idle(self, host: str) -> None:
        child = self._pop_idle(host)
        if child is not None:
            child.kill()
