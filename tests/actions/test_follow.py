"""Event streams and credentials over a long time, by a clock that the test moves on."""

import io
import itertools
import json
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from actions.run import run as run_action
from actions.workflow.client import api, credential, transport
from actions.workflow.console import Console
from actions.workflow.errors import ErrorResponse, StepFailed

START = time.monotonic()
KEEPALIVE = b": keepalive\n\n"
BEGIN, DONE = b"id: 1\nevent: log\ndata: {}\n\n", b"id: 2\nevent: run.completed\ndata: {}\n\n"
REFUSED = ConnectionRefusedError("refused")


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


def unavailable() -> ErrorResponse:
    return ErrorResponse(503, "http", "Service Unavailable")


class FakeHosts:
    """The API, which accepts `valid`, and GitHub's token service, which fails with `failures` next."""

    def __init__(self, clock: FakeClock) -> None:
        self.clock = clock
        self.failures: Iterator[Exception] = iter(())
        self.tokens = 0
        self.valid: set[str] = set()
        self.canceled: list[str] = []
        self.longest = 0.0
        self.streams: list[FakeResponse] = []

    def send(self, _method: str, url: str, headers: Any, _body: Any = None, seconds: float = 30.0) -> Any:
        self.longest = max(self.longest, seconds)
        if url.startswith("https://github"):
            if failure := next(self.failures, None):
                raise failure
            self.tokens += 1
            self.valid = {f"Bearer jwt-{self.tokens}"}
            return FakeResponse(json.dumps({"value": f"jwt-{self.tokens}"}).encode(), self.clock)
        if headers["Authorization"] not in self.valid:
            raise ErrorResponse(401, "unauthorized", "no valid API key")
        if url.endswith("/cancel"):
            self.canceled.append(headers["Authorization"])
            return FakeResponse(b'{"data": {"status": "running"}}', self.clock)
        return self.streams.pop(0)


@pytest.fixture
def hosts(clock) -> FakeHosts:
    return FakeHosts(clock)


@pytest.fixture
def workload(monkeypatch, clock, hosts) -> run_action.RunProgress:
    """A run whose step has the first token."""
    caller = credential.OidcCredential(
        "https://github", "request", "a", transport.fetch_token, lambda _: None
    )
    made = client(monkeypatch, clock, hosts.send, caller)
    hosts.streams = [FakeResponse(BEGIN, clock), FakeResponse(DONE, clock)]
    return run_action.RunProgress(made, {}, "key", "run_a")


@pytest.mark.parametrize("failure", [unavailable(), REFUSED])
def test_a_failing_token_service_does_not_end_the_step(hosts, workload, failure):
    messages = workload.api.follow("/events")
    assert next(messages).event == "log"
    hosts.clock.now += 300
    hosts.valid, hosts.failures = set(), itertools.repeat(failure, 5)
    assert next(messages).event == "run.completed" and hosts.tokens == 2


@pytest.mark.parametrize("failure", [unavailable(), REFUSED])
def test_a_token_service_that_stays_away_is_named(hosts, workload, failure):
    hosts.failures = itertools.repeat(failure)
    with pytest.raises(ErrorResponse, match="GitHub"):
        workload.api.get("/v1/runs/run_a")
    with pytest.raises(ErrorResponse, match="GitHub"):
        next(workload.api.follow("/events"))


def test_a_token_that_github_refuses_fails_the_step(hosts, workload):
    hosts.failures = iter([ErrorResponse(403, "http", "Forbidden")])
    with pytest.raises(StepFailed, match="GitHub refused an OIDC token: Forbidden"):
        workload.api.get("/v1/runs/run_a")


def test_a_run_is_canceled_with_the_old_token_while_no_new_one_comes(hosts, workload):
    next(workload.api.follow("/events"))
    hosts.clock.now += 250
    hosts.failures, hosts.longest = itertools.repeat(unavailable()), 0.0
    run_action.cancel(workload, Console(io.StringIO()))
    assert hosts.canceled == ["Bearer jwt-1"]
    assert hosts.longest <= 4.0


def test_a_cancel_waits_for_a_new_token(hosts, workload):
    next(workload.api.follow("/events"))
    hosts.clock.now += 600
    hosts.valid, hosts.failures = set(), itertools.repeat(unavailable(), 3)
    run_action.cancel(workload, Console(io.StringIO()))
    assert hosts.canceled == ["Bearer jwt-2"]
