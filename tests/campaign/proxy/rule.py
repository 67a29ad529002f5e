"""Faults between a process and the apiserver: the rules of a proxy.

Called by `tests.campaign.proxy.server` at each step of a request, in the order of
its list of rules. Each rule counts in `injected` what it did.
"""

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass

from tests.campaign.proxy.call import ProxiedRequest

RequestFilter = Callable[[ProxiedRequest], bool]


class ProxyCut(Exception):
    """The connection is broken off here."""


@dataclass(frozen=True)
class ReplacedResponse:
    """An answer in place of the apiserver's."""

    status: int
    body: bytes


@dataclass(frozen=True)
class ProxiedEvent:
    """One watch event of the apiserver."""

    call: ProxiedRequest
    type: str
    name: str
    line: bytes


class ProxyRule:
    """Passes everything; others override what they disturb."""

    injected = 0

    async def on_request(self, call: ProxiedRequest) -> ReplacedResponse | None:
        """Called before the request reaches the apiserver. Raises ProxyCut."""
        return None

    async def on_response(self, call: ProxiedRequest, status: int, body: bytes) -> None:
        """Called between the apiserver's response and the client; not for watches. Raises ProxyCut."""

    def event_delay(self, event: ProxiedEvent) -> float | None:
        """Return the delay of an event in seconds; None drops it."""
        return 0.0


class RequestRecorder(ProxyRule):
    """Keeps every request with the status of its answer."""

    def __init__(self) -> None:
        self.calls: list[tuple[ProxiedRequest, int]] = []

    async def on_response(self, call: ProxiedRequest, status: int, body: bytes) -> None:
        self.calls.append((call, status))


class CutBeforeRequest(ProxyRule):
    """Breaks off every `nth` of some requests, which the apiserver never sees."""

    def __init__(self, which: RequestFilter, nth: int = 1) -> None:
        self._which, self._nth, self._seen = which, nth, 0

    async def on_request(self, call: ProxiedRequest) -> ReplacedResponse | None:
        if self._which(call):
            self._seen += 1
            if self._seen % self._nth == 0:
                self.injected += 1
                raise ProxyCut
        return None


class LostResponse(ProxyRule):
    """Breaks off every `nth` of some requests when the apiserver has done what they ask."""

    def __init__(self, which: RequestFilter, nth: int = 1) -> None:
        self._which, self._nth, self._seen = which, nth, 0

    async def on_response(self, call: ProxiedRequest, status: int, body: bytes) -> None:
        if self._which(call):
            self._seen += 1
            if self._seen % self._nth == 0:
                self.injected += 1
                raise ProxyCut


class ErrorStorm(ProxyRule):
    """Answers every `nth` of some requests by an error of the apiserver; its statuses take turns."""

    def __init__(
        self, which: RequestFilter, statuses: tuple[int, ...] = (429, 500, 503), nth: int = 2
    ) -> None:
        self._which, self._statuses, self._nth, self._seen = which, statuses, nth, 0

    async def on_request(self, call: ProxiedRequest) -> ReplacedResponse | None:
        if not self._which(call):
            return None
        self._seen += 1
        if self._seen % self._nth:
            return None
        status = self._statuses[self.injected % len(self._statuses)]
        self.injected += 1
        return ReplacedResponse(status, error_body(status))


class SlowRequests(ProxyRule):
    """Some requests reach the apiserver `seconds` late."""

    def __init__(self, which: RequestFilter, seconds: float) -> None:
        self._which, self._seconds = which, seconds

    async def on_request(self, call: ProxiedRequest) -> ReplacedResponse | None:
        if self._which(call):
            self.injected += 1
            await asyncio.sleep(self._seconds)
        return None


class ExpiredWatch(ProxyRule):
    """Tells every `nth` watch that its version is too old: by the status, and in turn in the stream."""

    def __init__(self, nth: int = 2) -> None:
        self._nth, self._seen = nth, 0

    async def on_request(self, call: ProxiedRequest) -> ReplacedResponse | None:
        if not call.watches:
            return None
        self._seen += 1
        if self._seen % self._nth:
            return None
        self.injected += 1
        if self.injected % 2:
            return ReplacedResponse(410, error_body(410))
        event = {"type": "ERROR", "object": json.loads(error_body(410))}
        return ReplacedResponse(200, json.dumps(event).encode() + b"\n")


class DelayEvents(ProxyRule):
    """Events come `seconds` late."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds

    def event_delay(self, event: ProxiedEvent) -> float | None:
        self.injected += 1
        return self._seconds


class DropEvents(ProxyRule):
    """Every `nth` of some events never comes."""

    def __init__(self, nth: int = 1, types: tuple[str, ...] = ("ADDED", "MODIFIED", "DELETED")) -> None:
        self._nth, self._types, self._seen = nth, types, 0

    def event_delay(self, event: ProxiedEvent) -> float | None:
        if event.type in self._types:
            self._seen += 1
            if self._seen % self._nth == 0:
                self.injected += 1
                return None
        return 0.0


_REASONS = {410: "Expired", 429: "TooManyRequests", 500: "InternalError", 503: "ServiceUnavailable"}


def error_body(status: int) -> bytes:
    """The apiserver's words for an error."""
    words = "too old resource version: 1 (2)" if status == 410 else "the campaign refuses this request"
    found = {
        "kind": "Status", "apiVersion": "v1", "status": "Failure", "code": status,
        "reason": _REASONS[status], "message": words,
    }  # fmt: skip
    return json.dumps(found).encode()
