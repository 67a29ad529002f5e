"""Event streams and credentials over a long time, by a clock that the test moves on."""

import io
import time
from collections.abc import Callable
from typing import Any

import pytest

from actions.run import run as run_action
from actions.workflow.client import api, credential, transport
from actions.workflow.console import Console
from actions.workflow.errors import StepFailed

START = time.monotonic()
KEEPALIVE, DONE = b": keepalive\n\n", b"id: 1\nevent: run.completed\ndata: {}\n\n"


class FakeClock:
    """Stands for the module `time`."""

    def __init__(self) -> None:
        self.now = START

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


class FakeResponse(io.BytesIO):
    """A response whose end comes `seconds` after its content, as an exception if `error` is one."""

    status, length = 200, 0

    def __init__(
        self, content: bytes, clock: FakeClock, seconds: float = 0, error: Exception | None = None
    ) -> None:
        super().__init__(content)
        self._clock, self._seconds, self._error = clock, seconds, error

    def readline(self, size: int | None = -1, /) -> bytes:
        line = super().readline(size)
        if not line:
            self._clock.now += self._seconds
            if self._error is not None:
                raise self._error
        return line


@pytest.fixture
def clock(monkeypatch) -> FakeClock:
    made = FakeClock()
    for module in (api, credential, run_action):
        monkeypatch.setattr(module, "time", made)
    return made


def client(monkeypatch, clock: FakeClock, send: Callable[..., Any], caller: Any = None) -> api.ApiClient:
    for module in (api, transport):
        monkeypatch.setattr(module, "send_request", send)
    key = caller or credential.ApiKeyCredential("crw_key")
    return api.ApiClient("https://crewyard", key, Console(io.StringIO()), clock.now + 7 * 24 * 3600)


def test_a_proxy_that_cuts_every_connection_does_not_end_a_silent_run(monkeypatch, clock):
    connections = 100

    def send(*_: Any) -> FakeResponse:
        nonlocal connections
        connections -= 1
        if not connections:
            return FakeResponse(DONE, clock)
        return FakeResponse(KEEPALIVE, clock, 60, None if connections % 2 else ConnectionResetError())

    assert next(client(monkeypatch, clock, send).follow("/events")).event == "run.completed"


@pytest.mark.parametrize(("seconds", "error"), [(0.1, None), (45.0, TimeoutError("silent"))])
def test_a_stream_that_closes_immediately_or_is_silent_is_given_up(monkeypatch, clock, seconds, error):
    opened = []

    def send(*_: Any) -> FakeResponse:
        opened.append(clock.now)
        return FakeResponse(KEEPALIVE, clock, seconds, error)

    with pytest.raises(StepFailed, match="repeatedly"):
        list(client(monkeypatch, clock, send).follow("/events"))
    assert len(opened) == api.MAX_RECONNECTS + 1
