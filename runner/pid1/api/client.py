"""The facade's four calls, as docs/protocol.md has them. Used by `claim`, `sender`, `upload` and `report`."""

from __future__ import annotations

import os
import time

from runner.pid1.api.backoff import delay
from runner.pid1.api.fast_json import dumps, loads
from runner.pid1.api.http import Answer, Wire, WireError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from runner.pid1.settings import Settings

PROTOCOL = 1
_TIMEOUT = 15.0  # of one wait for the other side; a result waits for the Kubernetes API behind the facade


class Away(Exception):
    """No answer that the protocol names came within the time that was left."""


class Lost(Exception):
    """This pod no longer holds the run (409): the crew must be killed."""


class Facade:
    """One worker's way to the facade: its own connection, its own deadline."""

    def __init__(self, settings: Settings, nonce: str) -> None:
        self._wire = Wire(settings.url)
        self._path = f"/internal/v1/runs/{settings.run}"
        self._headers = {"Authorization": f"Bearer {settings.token}", "Accept": "application/json"}
        self._identity = {"pod_uid": settings.pod_uid, "nonce": nonce}
        self._run_uid = settings.run_uid

    def claim(self, timeout: float) -> Answer:
        """One try to claim the run. Raises WireError."""
        return self._post(
            "/claim", {"protocol": PROTOCOL, "run_uid": self._run_uid, **self._identity}, timeout
        )

    def events(self, events: Iterable[bytes]) -> Answer:
        """One try to append encoded events. Raises WireError."""
        head = dumps(self._identity)[:-1].encode()
        body = b"".join((head, b', "events": [', b",".join(events), b"]}"))
        return self._send("POST", "/events", body)

    def result(self, result: dict[str, object]) -> Answer:
        """One try to report the end. Raises WireError."""
        return self._post("/result", {**self._identity, **result}, _TIMEOUT)

    def artifact(
        self, path: str, chunks: bytes | Iterable[bytes], size: int, sha256: str, kind: str, partial: bool
    ) -> Answer:
        """One try to store a file; `path` is already percent-encoded. Raises WireError."""
        headers = {
            **self._headers,
            "Content-Type": kind,
            "X-Crewyard-Sha256": sha256,
            "X-Crewyard-Partial": "true" if partial else "false",
            "X-Crewyard-Pod": self._identity["pod_uid"],
            "X-Crewyard-Nonce": self._identity["nonce"],
        }
        return self._wire.call("PUT", f"{self._path}/artifacts/{path}", headers, chunks, size, _TIMEOUT * 2)

    def close(self) -> None:
        """Gives the connection back."""
        self._wire.close()

    def _post(self, path: str, body: object, timeout: float) -> Answer:
        return self._send("POST", path, dumps(body).encode(), timeout)

    def _send(self, method: str, path: str, body: bytes, timeout: float = _TIMEOUT) -> Answer:
        headers = {**self._headers, "Content-Type": "application/json"}
        return self._wire.call(method, self._path + path, headers, body, len(body), timeout)


def insist(call: Callable[[], Answer], named: frozenset[int], pause: Callable[[float], bool]) -> Answer:
    """Repeats `call` until its status is one of `named`; `pause(seconds)` is true when there is no more time.

    Raises Away when the time is over, Lost on 409.
    """
    attempt = 0
    while True:
        try:
            answer = call()
            trouble = f"status {answer.status}"
            if answer.status == 409:
                raise Lost
            if answer.status in named:
                return answer
        except WireError as error:
            trouble = str(error)
        attempt += 1
        if pause(delay(attempt, chance())):
            raise Away(trouble)


def chance() -> float:
    """A number in [0, 1) for the jitter; drawn without importing `random`."""
    return os.urandom(1)[0] / 256


def parsed(answer: Answer) -> dict[str, object]:
    """The answer's JSON object, {} where it is none."""
    try:
        value = loads(answer.body)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def now() -> float:
    """Seconds on the monotonic clock, from which every duration and deadline of a run is taken."""
    return time.monotonic()
