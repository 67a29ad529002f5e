"""After the crew's death: events acknowledged, artifacts acknowledged, then the result. Started by `work`.

A thread of its own, so that the main thread still hears when the pod is asked to stop.
"""

from __future__ import annotations

import threading
import time

from runner.pid1 import termination
from runner.pid1.api.backoff import delay
from runner.pid1.api.client import Away, Facade, Lost, chance, insist, parsed
from runner.pid1.api.fast_json import dumps
from runner.pid1.artifacts.upload import Upload
from runner.pid1.deadline import Until
from runner.pid1.output import encode
from runner.pid1.output.capture import Intake
from runner.pid1.output.event_queue import Events
from runner.pid1.output.sender import Sender
from runner.pid1.process import signals
from runner.pid1.verdict import Verdict

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

REPORTED, REFUSED, AWAY = 0, 77, 78
_NOT_TAKEN = frozenset({400, 413, 422})


class Finish(threading.Thread):
    """`code` is the exit code of the pod once the thread has ended."""

    def __init__(
        self, facade: Facade, intake: Intake, events: Events, sender: Sender, upload: Upload, until: Until,
        decide: Callable[[dict[str, object] | None], Verdict], duration_ms: int, output_bytes: int, log: str,
    ) -> None:  # fmt: skip
        super().__init__(name="finish", daemon=True)
        self._facade = facade
        self._intake = intake
        self._events = events
        self._sender = sender
        self._upload = upload
        self._until = until
        self._decide = decide
        self._duration_ms = duration_ms
        self._output_bytes = output_bytes
        self._log = log
        self._verdict = Verdict("failed")
        self.code = AWAY

    def run(self) -> None:
        """Every wait in here ends at the deadline, which the main thread may bring forward."""
        try:
            self._upload.finish()
            self._join(self._intake)
            self._verdict = self._decide(self._intake.end)
            self._write(reported=False)
            self._join(self._upload)
            if self._upload.is_alive():
                self._upload.away = "the time to store them was over"
            self._count_dropped()
            self._judge_artifacts()
            output = self._output()
            self._events.close()
            self._join(self._sender)
            if self._sender.lost or self._upload.lost:
                raise Lost
            self._report(output)
            self.code = REPORTED
            self._write(reported=True)
        except Lost:
            self.code = REFUSED
        except Away:
            self._write(reported=False)
        finally:
            signals.poke()

    def _join(self, thread: threading.Thread) -> None:
        while thread.is_alive() and self._until.left() > 0:
            thread.join(min(0.5, self._until.left()))

    def _count_dropped(self) -> None:
        if self._intake.dropped:
            self._say(
                f"{self._intake.dropped} log lines were dropped: a run keeps no more. Print less, "
                "or write a file "
                "into the artifacts directory."
            )

    def _judge_artifacts(self) -> None:
        lost = [f"{name[:200]}: {reason}" for name, reason in list(self._upload.refused.items())[:5]]
        if self._upload.away:
            lost.append(f"not all files could be stored: {self._upload.away}")
        end = self._intake.end or {}
        named = end.get("output_artifact")
        if isinstance(named, str) and named not in self._upload.stored and named not in self._upload.refused:
            lost.insert(0, f"{named[:200]}, the output: {self._upload.over.get(named, 'it is gone')}")
        if lost and self._verdict.outcome == "succeeded":
            count = max(len(lost), len(self._upload.refused))
            text = f"The crew ended well, but {count} of its artifacts are lost. "
            text += "Write fewer or smaller files, with plain names. " + "; ".join(lost)
            self._verdict = Verdict("failed", "ArtifactsLost", text)

    def _output(self) -> object:
        end = self._intake.end or {}
        value = end.get("result") if self._verdict.outcome == "succeeded" else None
        if (
            value is not None
            and len(dumps(value, ascii_only=False).encode("utf-8", "replace")) > self._output_bytes
        ):
            self._say(f"The output is dropped: it is above {self._output_bytes} bytes.")
            return None
        return value

    def _report(self, output: object) -> None:
        end = self._intake.end or {}
        named = end.get("output_artifact")
        attempt = 0
        while True:
            stored = dict(self._upload.stored)
            result: dict[str, object] = {
                "outcome": self._verdict.outcome,
                "reason": self._verdict.reason,
                "message": self._verdict.message,
                "duration_ms": self._duration_ms,
                "output": output,
                "output_artifact": named if isinstance(named, str) and named in stored else None,
                "last_event": self._events.last,
                "artifacts": {"count": len(stored), "bytes": sum(size for size, _ in stored.values())},
            }
            answer = insist(lambda: self._facade.result(result), _NOT_TAKEN | {200, 425}, self._until.pause)  # noqa: B023
            if answer.status == 200:
                return
            if answer.status == 425:
                self._upload.again(_missing(parsed(answer).get("missing")))
            else:
                output = None  # the one part of it that the crew made
            attempt += 1
            if self._until.pause(delay(attempt, chance())):
                raise Away(f"status {answer.status}")

    def _say(self, message: str) -> None:
        self._events.put(encode.stamp(time.time_ns()), [("log", encode.log(message, "warning"))])

    def _write(self, reported: bool) -> None:
        verdict = self._verdict
        text = termination.compose(verdict.outcome, verdict.reason, verdict.message, reported)
        termination.write(self._log, text)


def _missing(said: object) -> list[str] | None:
    """The names of the artifacts to send again; None, which is all, where they are not named. Pure."""
    names = said.get("artifacts", []) if isinstance(said, dict) else None
    if isinstance(names, list) and all(isinstance(name, str) for name in names):
        return names
    return None
