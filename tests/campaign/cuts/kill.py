"""SIGKILL at one point: just before the apiserver hears of a write, or just after it has done it.

A rule of the proxy. The process is dead before anything else can happen in it:
of a write that was done it never learns. Called by `tests.campaign.cuts.passes`.
"""

import asyncio
import signal

from tests.campaign.child import Child
from tests.campaign.cuts.kill_point import KillPoint, describe
from tests.campaign.proxy.call import ProxiedRequest
from tests.campaign.proxy.rule import ProxyCut, ProxyRule, ReplacedResponse


class KillRule(ProxyRule):
    """Kills `child` once, at `point`; `fired` is set then, and `at` the loop's time."""

    def __init__(self, child: Child, point: KillPoint, applied: bool) -> None:
        self.fired = asyncio.Event()
        self.at = 0.0
        self._child, self._point, self._applied, self._seen = child, point, applied, 0

    def _reached(self, call: ProxiedRequest) -> bool:
        if self.fired.is_set() or not call.writes or describe(call) != self._point.what:
            return False
        self._seen += 1
        return self._seen == self._point.nth

    def _kill(self) -> None:
        self._child.send(signal.SIGKILL)
        self.injected += 1
        self.at = asyncio.get_running_loop().time()
        self.fired.set()
        raise ProxyCut

    async def on_request(self, call: ProxiedRequest) -> ReplacedResponse | None:
        if not self._applied and self._reached(call):
            self._kill()
        return None

    async def on_response(self, call: ProxiedRequest, status: int, body: bytes) -> None:
        if self._applied and status < 400 and self._reached(call):
            self._kill()
