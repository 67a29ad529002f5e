"""The calls of the internal API (docs/protocol.md). Used by all workers of process 1."""

from __future__ import annotations

import os
import time

from runner.pid1.api.backoff import delay
from runner.pid1.api.fast_json import dumps, loads
from runner.pid1.api.http import HTTPConnectionError, HTTPResponse, KeepAliveConnection

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from runner.pid1.settings import RunnerSettings

PROTOCOL_VERSION = 1
_ASK_TIMEOUT_SECONDS = 30.0  # the API waits up to 20 s for an answer
_CALL_TIMEOUT_SECONDS = 15.0  # per network wait; a result waits for the Kubernetes API behind the API


class APIUnavailable(Exception):
    """The API sent no response that the protocol defines before the deadline."""


class RunLost(Exception):
    """This pod no longer holds the run (409): the crew must be killed."""


class RunAPIClient:
    """API client of one worker, with its own connection: a new one, or an open one that no other uses."""

    def __init__(
        self, settings: RunnerSettings, nonce: str, connection: KeepAliveConnection | None = None
    ) -> None:
        self._connection = connection or KeepAliveConnection(settings.url, settings.authorities)
        self._path = f"/internal/v1/runs/{settings.run}"
        self._headers = {"Authorization": f"Bearer {settings.token}", "Accept": "application/json"}
        self._identity = {"pod_uid": settings.pod_uid, "nonce": nonce}
        self._run_uid = settings.run_uid

    def claim(self, timeout: float) -> HTTPResponse:
        """Send one claim. Raises HTTPConnectionError."""
        return self._post(
            "/claim", {"protocol": PROTOCOL_VERSION, "run_uid": self._run_uid, **self._identity}, timeout
        )

    def events(self, events: Iterable[bytes]) -> HTTPResponse:
        """Send one batch of encoded events. Raises HTTPConnectionError."""
        head = dumps(self._identity)[:-1].encode()
        body = b"".join((head, b', "events": [', b",".join(events), b"]}"))
        return self._send("POST", "/events", body)

    def ask(self, question: dict[str, object]) -> HTTPResponse:
        """Ask a person, or close a question, once. Raises HTTPConnectionError."""
        return self._post("/inputs", {**self._identity, **question}, _ASK_TIMEOUT_SECONDS)

    def result(self, result: dict[str, object]) -> HTTPResponse:
        """Send the result once. Raises HTTPConnectionError."""
        return self._post("/result", {**self._identity, **result}, _CALL_TIMEOUT_SECONDS)

    def artifact(
        self, path: str, chunks: bytes | Iterable[bytes], size: int, sha256: str, kind: str, partial: bool
    ) -> HTTPResponse:
        """Upload a file once; `path` is percent-encoded. Raises HTTPConnectionError."""
        headers = {
            **self._headers,
            "Content-Type": kind,
            "X-Crewyard-Sha256": sha256,
            "X-Crewyard-Partial": "true" if partial else "false",
            "X-Crewyard-Pod": self._identity["pod_uid"],
            "X-Crewyard-Nonce": self._identity["nonce"],
        }
        return self._connection.call(
            "PUT", f"{self._path}/artifacts/{path}", headers, chunks, size, _CALL_TIMEOUT_SECONDS * 2
        )

    def abort(self) -> None:
        """End the call of another thread, and each later call, with HTTPConnectionError."""
        self._connection.abort()

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def _post(self, path: str, body: object, timeout: float) -> HTTPResponse:
        return self._send("POST", path, dumps(body).encode(), timeout)

    def _send(
        self, method: str, path: str, body: bytes, timeout: float = _CALL_TIMEOUT_SECONDS
    ) -> HTTPResponse:
        headers = {**self._headers, "Content-Type": "application/json"}
        return self._connection.call(method, self._path + path, headers, body, len(body), timeout)


def retry_until_status(
    call: Callable[[], HTTPResponse], statuses: frozenset[int], pause: Callable[[float], bool]
) -> HTTPResponse:
    """Retry `call` until its status is in `statuses`; `pause(seconds)` returns True after the deadline.

    Raises APIUnavailable after the deadline, RunLost on 409.
    """
    attempt = 0
    while True:
        try:
            response = call()
            problem = f"status {response.status}"
            if response.status == 409:
                raise RunLost
            if response.status in statuses:
                return response
        except HTTPConnectionError as error:
            problem = str(error)
        attempt += 1
        if pause(delay(attempt, jitter())):
            raise APIUnavailable(problem)


def jitter() -> float:
    """Return a random number in [0, 1), without importing `random`."""
    return os.urandom(1)[0] / 256


def json_object(response: HTTPResponse) -> dict[str, object]:
    """Return the JSON object of a response; {} if it is not one."""
    try:
        value = loads(response.body)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def now() -> float:
    """Return the monotonic time in seconds, the clock of all durations and deadlines of a run."""
    return time.monotonic()
