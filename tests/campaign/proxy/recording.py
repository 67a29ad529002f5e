"""Recorded list responses, and a rule that returns them later, as a stale cache does.

Called by tests of watches. A restarted process reads the old list,
and a watch from its version tells it what happened since, as an apiserver would.
"""

from tests.campaign.proxy.call import ProxiedRequest
from tests.campaign.proxy.rule import ProxyRule, ReplacedResponse


class ListRecorder(ProxyRule):
    """Keeps the latest whole answer to each list, until `stop`."""

    def __init__(self) -> None:
        self.lists: dict[tuple[str, str, str], bytes] = {}
        self._on = True

    async def on_response(self, call: ProxiedRequest, status: int, body: bytes) -> None:
        if self._on and call.lists and status == 200 and "continue" not in call.query:
            self.lists[call.selection] = body

    def stop(self) -> None:
        """Keep what there is."""
        self._on = False


class StaleLists(ProxyRule):
    """Answers the first `times` lists of each kind from a recording."""

    def __init__(self, recording: ListRecorder, times: int = 1) -> None:
        self._lists = recording.lists
        self._left = dict.fromkeys(recording.lists, times)

    async def on_request(self, call: ProxiedRequest) -> ReplacedResponse | None:
        if not call.lists or not self._left.get(call.selection) or "continue" in call.query:
            return None
        self._left[call.selection] -= 1
        self.injected += 1
        return ReplacedResponse(200, self._lists[call.selection])
