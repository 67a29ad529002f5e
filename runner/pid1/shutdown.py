"""Shutdown after the crew's exit: flush events, flush artifacts, then report the result. Started by `work`.

A separate thread, so the main thread can still handle stop signals.
"""

from __future__ import annotations

import threading
import time

from runner.pid1 import termination
from runner.pid1.api.backoff import delay
from runner.pid1.api.client import (
    APIUnavailable,
    RunAPIClient,
    RunLost,
    jitter,
    json_object,
    retry_until_status,
)
from runner.pid1.api.fast_json import dumps
from runner.pid1.artifacts.upload import ArtifactUploader
from runner.pid1.deadline import Deadline
from runner.pid1.output import encode
from runner.pid1.output.capture import OutputCapture
from runner.pid1.output.event_queue import EventQueue
from runner.pid1.output.sender import EventSender
from runner.pid1.process import signals
from runner.pid1.verdict import RunVerdict

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

EXIT_REPORTED, EXIT_REFUSED, EXIT_UNAVAILABLE = 0, 77, 78
_REJECTED_STATUSES = frozenset({400, 413, 422})
_READ_SECONDS = 2.0  # of what the pipes hold


class Shutdown(threading.Thread):
    """The shutdown thread. `code` is the exit code of the pod once the thread has finished."""

    def __init__(
        self, client: RunAPIClient, capture: OutputCapture, events: EventQueue, sender: EventSender,
        upload: ArtifactUploader, deadline: Deadline,
        decide: Callable[[dict[str, object] | None], RunVerdict],
        duration_ms: int, output_bytes: int, log: str, killed: bool,
    ) -> None:  # fmt: skip
        """`killed`: a signal ended the crew, maybe before its files were complete."""
        super().__init__(name="shutdown", daemon=True)
        self._client = client
        self._capture = capture
        self._events = events
        self._sender = sender
        self._upload = upload
        self._deadline = deadline
        self._decide = decide
        self._duration_ms = duration_ms
        self._output_bytes = output_bytes
        self._log = log
        self._killed = killed
        self._verdict = RunVerdict("failed")
        self.code = EXIT_UNAVAILABLE

    def run(self) -> None:
        """Flush and report; every wait ends at the deadline, which the main thread may bring forward."""
        try:
            self._join(self._capture)
            if self._capture.is_alive():
                # The API takes no more events: without them, read on to the crew's report.
                self._events.close()
                self._capture.join(_READ_SECONDS)
            if self._killed and self._capture.final_report is None:
                self._upload.partial = True
            self._upload.finish(self._declared_files())
            self._verdict = self._decide(self._capture.final_report)
            self._write_termination(reported=False)
            self._join(self._upload)
            if self._upload.is_alive():
                self._upload.failure = "the time to store them has run out"
            self._count_dropped()
            self._check_artifacts()
            output = self._output()
            self._events.close()
            self._join(self._sender)
            if self._sender.lost or self._upload.lost:
                raise RunLost
            self._report(output)
            self.code = EXIT_REPORTED
            self._write_termination(reported=True)
        except RunLost:
            self.code = EXIT_REFUSED
        except APIUnavailable:
            self._write_termination(reported=False)
        finally:
            signals.wake_main_thread()

    def _join(self, thread: threading.Thread) -> None:
        while thread.is_alive() and self._deadline.remaining() > 0:
            thread.join(min(0.5, self._deadline.remaining()))

    def _declared_files(self) -> list[str]:
        named = (self._capture.final_report or {}).get("files")
        return [name for name in named if isinstance(name, str)] if isinstance(named, list) else []

    def _count_dropped(self) -> None:
        if self._capture.dropped:
            self._log_warning(
                f"{self._capture.dropped} log lines were dropped: the run is at its limit of log lines. "
                "Print less, or write a file into the artifacts directory."
            )

    def _check_artifacts(self) -> None:
        lost = [f"{name[:200]}: {reason}" for name, reason in list(self._upload.refused.items())[:5]]
        if self._upload.failure:
            lost.append(f"not all files could be stored: {self._upload.failure}")
        report = self._capture.final_report or {}
        named = report.get("output_artifact")
        if isinstance(named, str) and named not in self._upload.stored and named not in self._upload.refused:
            lost.insert(
                0, f"{named[:200]}, the output: {self._upload.over_limit.get(named, 'the file is missing')}"
            )
        if lost and self._verdict.outcome == "succeeded":
            count = max(len(lost), len(self._upload.refused))
            text = f"The crew succeeded, but {count} of its artifacts are lost. "
            text += "Write fewer or smaller files, with plain names. " + "; ".join(lost)
            self._verdict = RunVerdict("failed", "ArtifactsLost", text)

    def _output(self) -> object:
        report = self._capture.final_report or {}
        value = report.get("result") if self._verdict.outcome == "succeeded" else None
        if (
            value is not None
            and len(dumps(value, ascii_only=False).encode("utf-8", "replace")) > self._output_bytes
        ):
            self._log_warning(f"The output was dropped: it has more than {self._output_bytes} bytes.")
            return None
        if (named := self._output_artifact()) is not None:
            self._log_line(
                f"The output is the artifact {named}: it has more than {self._output_bytes} bytes.", "info"
            )
        return value

    def _output_artifact(self) -> str | None:
        named = (self._capture.final_report or {}).get("output_artifact")
        return named if isinstance(named, str) and named in self._upload.stored else None

    def _report(self, output: object) -> None:
        attempt = 0
        while True:
            stored = dict(self._upload.stored)
            result: dict[str, object] = {
                "outcome": self._verdict.outcome,
                "reason": self._verdict.reason,
                "message": self._verdict.message,
                "duration_ms": self._duration_ms,
                "output": output,
                "output_artifact": self._output_artifact(),
                "last_event": self._events.last_seq,
                "artifacts": {"count": len(stored), "bytes": sum(size for size, _ in stored.values())},
            }
            response = retry_until_status(
                lambda: self._client.result(result),  # noqa: B023
                _REJECTED_STATUSES | {200, 425},
                self._deadline.pause,
            )
            if response.status == 200:
                return
            if response.status == 425:
                self._upload.upload_again(_missing_artifacts(json_object(response).get("missing")))
            else:
                output = None  # the only part of the result that the crew controls
            attempt += 1
            if self._deadline.pause(delay(attempt, jitter())):
                raise APIUnavailable(f"status {response.status}")

    def _log_warning(self, message: str) -> None:
        self._log_line(message, "warning")

    def _log_line(self, message: str, level: str) -> None:
        self._events.put(encode.timestamp(time.time_ns()), [("log", encode.log(message, level))])

    def _write_termination(self, reported: bool) -> None:
        verdict = self._verdict
        text = termination.compose(verdict.outcome, verdict.reason, verdict.message, reported)
        termination.write(self._log, text)


def _missing_artifacts(missing: object) -> list[str] | None:
    """Return the names of the artifacts to send again; None (all) if the API does not name them. Pure."""
    names = missing.get("artifacts", []) if isinstance(missing, dict) else None
    if isinstance(names, list) and all(isinstance(name, str) for name in names):
        return names
    return None
