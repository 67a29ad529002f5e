"""SIGKILL at one point: just before the apiserver hears of a write, or just after it has done it.

A rule of the proxy. The process is dead before anything else can happen in it:
of a write that was done it never learns. Called by `tests.campaign.cuts.passes`.
"""

import asyncio
import signal

from tests.campaign.child import Child
from tests.campaign.cuts.kill_point import Point, describe
from tests.campaign.proxy.call import Call
from tests.campaign.proxy.rule import Cut, Instead, Rule


class Kill(Rule):
    """Kills `child` once, at `point`; `fired` is set then, and `at` the loop's time."""

    def __init__(self, child: Child, point: Point, applied: bool) -> None:
        self.fired = asyncio.Event()
        self.at = 0.0
        self._child, self._point, self._applied, self._seen = child, point, applied, 0

    def _reached(self, call: Call) -> bool:
        if self.fired.is_set() or not call.writes or describe(call) != self._point.what:
            return False
        self._seen += 1
        return self._seen == self._point.nth

    def _kill(self) -> None:
        self._child.send(signal.SIGKILL)
        self.injected += 1
        self.at = asyncio.get_running_loop().time()
        self.fired.set()
        raise Cut

    async def asked(self, call: Call) -> Instead | None:
        if not self._applied and self._reached(call):
            self._kill()
        return None

    async def answered(self, call: Call, status: int, body: bytes) -> None:
        if self._applied and status < 400 and self._reached(call):
            self._kill()
