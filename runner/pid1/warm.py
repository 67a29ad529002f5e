"""A pod that was started before its run: the crew's process imports the entrypoint while this one waits.

The wait is a bounded long poll in a thread, so a stop signal and the end of the crew's process are noticed at
once. What the import prints stays in the pipes until a run takes the pod, and becomes the first lines of its
log; an import that prints more than the pipes hold goes on then. Called by `main`.
"""

from __future__ import annotations

import os
import sys
import threading

from runner.pid1.api.backoff import delay
from runner.pid1.api.client import jitter, json_object
from runner.pid1.api.fast_json import dumps
from runner.pid1.api.http import HTTPConnectionError, KeepAliveConnection
from runner.pid1.output.channel import parse_line
from runner.pid1.output.mask import SecretMask
from runner.pid1.output.sync_markers import MarkerSplitter
from runner.pid1.process import reaper, signals
from runner.pid1.verdict import failed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from runner.pid1.process.launch import CrewProcess
    from runner.pid1.settings import RunnerSettings

PROTOCOL_VERSION = 1
_WAIT_SECONDS = 20
_CALL_TIMEOUT_SECONDS = 30.0
_LOOK_SECONDS = 60.0  # without a signal
_MAX_PIPE_BYTES = 1 << 20


class AssignedRun:
    """The run that the pod got, and the open connection of the wait."""

    def __init__(self, run: str, run_uid: str, token: str, connection: KeepAliveConnection) -> None:
        self.run = run
        self.run_uid = run_uid
        self.token = token
        self.connection = connection


class NoRun:
    """The pod gets no run: it was stopped, its token is not valid any more, or the crew's process ended."""

    def __init__(self, message: str, reason: str | None = None, stopped: bool = False) -> None:
        self.message = message
        self.reason = reason
        self.stopped = stopped


def wait(settings: RunnerSettings, child: CrewProcess) -> AssignedRun | NoRun:
    """Return the pod's run as soon as it has one."""
    poll = _Poll(settings)
    poll.start()
    while True:
        if signals.wait(_LOOK_SECONDS) in signals.STOP:
            return NoRun("the pod was stopped while it waited for a run", stopped=True)
        if poll.outcome is not None:
            return poll.outcome
        if reaper.wait_status(child.pid) is not None:
            return _import_failure(settings, child)


class _Poll(threading.Thread):
    """Asks the API until it answers with a run or that this pod is not known."""

    def __init__(self, settings: RunnerSettings) -> None:
        super().__init__(name="wait", daemon=True)
        self._connection = KeepAliveConnection(settings.url, settings.authorities)
        self._path = f"/internal/v1/warm/{settings.warm}/wait"
        self._headers = {"Authorization": f"Bearer {settings.token}", "Content-Type": "application/json"}
        question = {"protocol": PROTOCOL_VERSION, "pod_uid": settings.pod_uid, "wait_seconds": _WAIT_SECONDS}
        self._body = dumps(question).encode()
        self._pause = threading.Event()
        self.outcome: AssignedRun | NoRun | None = None

    def run(self) -> None:
        """Ask again and again; wake the main thread with the outcome."""
        attempt = 0
        while self.outcome is None:
            try:
                attempt = self._ask(attempt)
            except HTTPConnectionError:
                attempt += 1
            if attempt:
                self._pause.wait(delay(attempt, jitter()))
        signals.wake_main_thread()

    def _ask(self, attempt: int) -> int:
        """Ask once; return the number of attempts that failed in succession."""
        response = self._connection.call(
            "POST", self._path, self._headers, self._body, len(self._body), _CALL_TIMEOUT_SECONDS
        )
        if response.status in (401, 404):
            self.outcome = NoRun(f"the API responded {response.status} to a pod that waits for a run")
            return 0
        answer = json_object(response) if response.status == 200 else {}
        fields = [answer.get(name) for name in ("run", "run_uid", "token")]
        if answer.get("state") == "bound" and all(isinstance(field, str) and field for field in fields):
            run, run_uid, token = map(str, fields)
            self.outcome = AssignedRun(run, run_uid, token, self._connection)
            return 0
        return 0 if answer.get("state") == "waiting" else attempt + 1


def _import_failure(settings: RunnerSettings, child: CrewProcess) -> NoRun:
    """Print what the crew's process has printed, and return the failure that it reported."""
    mask = SecretMask(settings.secrets, os.environ)
    for descriptor in (child.stdout, child.stderr):
        # Without the marks for the order of events.
        markers = MarkerSplitter()
        text = b"".join(piece for piece, _ in markers.feed(_read(descriptor))) + markers.end()
        for line in filter(None, text.split(b"\n")):
            os.write(sys.stdout.fileno(), mask.line(line) + b"\n")
    for line in filter(None, _read(child.channel).split(b"\n")):
        message = parse_line(line, _MAX_PIPE_BYTES, mask)
        if message.kind == "log":
            os.write(sys.stdout.fileno(), message.message.encode("utf-8", "replace") + b"\n")
        failure = (message.final_report or {}).get("failure")
        if isinstance(failure, dict):
            verdict = failed(failure)
            return NoRun(str(verdict.message), verdict.reason)
    return NoRun("the process of the crew ended while it imported the entrypoint")


def _read(descriptor: int) -> bytes:
    """Return what the pipe holds. A process that escaped may keep it open, so never wait for its end."""
    os.set_blocking(descriptor, False)
    parts: list[bytes] = []
    size = 0
    try:
        while size < _MAX_PIPE_BYTES and (data := os.read(descriptor, 65536)):
            parts.append(data)
            size += len(data)
    except BlockingIOError:
        pass
    return b"".join(parts)
