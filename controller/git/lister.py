"""Listings in child processes: by ssh, and long ones by http. Called by `controller.git.client`.

Beside the hand-shake of ssh the start of a process would cost most. So a child that
listed by ssh is kept for the next question to the same host, and for no other: what
one server did to it must not reach the keys of another.
"""

import asyncio
from dataclasses import asdict
from weakref import WeakValueDictionary

from controller.git.process import Child, workplace
from controller.git.repository import Head, Remote

AT_ONCE = 4
OF_ONE_HOST = 2
"""A slow host leaves places for the others."""
KEPT = 2
KEPT_SECONDS = 180.0
QUESTIONS = 100
"""Of one child, so that nothing piles up in it."""


class Listings:
    """Listings, four at a time. `allow` and `deny` are networks in CIDR form."""

    def __init__(self, allow: tuple[str, ...], deny: tuple[str, ...]) -> None:
        self._network = {"allow": list(allow), "deny": list(deny)}
        self._places = asyncio.Semaphore(AT_ONCE)
        self._hosts: WeakValueDictionary[str, asyncio.Semaphore] = WeakValueDictionary()
        self._kept: dict[str, tuple[Child, asyncio.TimerHandle]] = {}
        self._closed = False

    async def head(self, remote: Remote, ref: dict[str, str], seconds: float) -> Head:
        """Where `ref` is, within `seconds` from its turn on. Raises GitProblem."""
        request = {"remote": asdict(remote), "ref": ref, "seconds": seconds, **self._network}
        host = self._hosts.setdefault(remote.host, asyncio.Semaphore(OF_ONE_HOST))
        async with host, self._places, workplace() as place:
            child, answered = await self._child(remote), False
            try:
                told = await child.ask({**request, "place": place}, remote, seconds)
                answered = True
            finally:
                # After a refusal, too, a new one is started: refusals are rare, and looks after them rarer.
                if not (answered and remote.ssh and self._keep(remote.host, child)):
                    await child.end()
        return Head(str(told["head"]["name"]), str(told["head"]["commit"]))

    async def close(self) -> None:
        """Ends the children that wait, and keeps no other."""
        self._closed = True
        for host in list(self._kept):
            child = self._taken(host)
            if child is not None:
                await child.end()

    async def _child(self, remote: Remote) -> Child:
        kept = self._taken(remote.host) if remote.ssh else None
        return kept if kept is not None and kept.alive else await Child.start()

    def _keep(self, host: str, child: Child) -> bool:
        """Keeps `child` for a while, rather than that which waits longest; False where it is not kept."""
        if self._closed or host in self._kept or not child.alive or child.asked >= QUESTIONS:
            return False
        if len(self._kept) >= KEPT:
            self._let_go(next(iter(self._kept)))
        timer = asyncio.get_running_loop().call_later(KEPT_SECONDS, self._let_go, host)
        self._kept[host] = (child, timer)
        return True

    def _taken(self, host: str) -> Child | None:
        child, timer = self._kept.pop(host, (None, None))
        if timer:
            timer.cancel()
        return child

    def _let_go(self, host: str) -> None:
        child = self._taken(host)
        if child is not None:
            child.kill()
