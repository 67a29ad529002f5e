"""The end of a run whose events the API server did not take before the deadline."""

from __future__ import annotations

import json
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from runner.pid1.artifacts.upload import ArtifactUploader
from runner.pid1.deadline import Deadline
from runner.pid1.output.capture import OutputCapture
from runner.pid1.output.echo import Echo
from runner.pid1.output.event_queue import EventQueue
from runner.pid1.output.mask import SecretMask
from runner.pid1.output.sender import EventSender
from runner.pid1.process import signals
from runner.pid1.process.launch import CrewProcess
from runner.pid1.shutdown import EXIT_UNAVAILABLE, Shutdown
from runner.pid1.verdict import RunVerdict, decide


def ended_crew(output: bytes, report: dict[str, object]) -> CrewProcess:
    """Return a crew that has written this and exited."""
    ends = []
    for content in (output, b"", json.dumps(report).encode() + b"\n"):
        reading, writing = os.pipe()
        os.write(writing, content)
        os.close(writing)
        ends.append(reading)
    return CrewProcess(0, *ends, -1)


def test_a_report_behind_events_that_no_one_takes_decides_the_outcome(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(signals, "wake_main_thread", lambda: None)
    client: Any = SimpleNamespace(result=lambda result: SimpleNamespace(status=503, body=b""))
    events, deadline = EventQueue(max_bytes=1), Deadline()
    crew = ended_crew(b"one\ntwo\n", {"failure": {"reason": "ImportError", "message": "no module"}})
    with Path(os.devnull).open("wb") as log:
        capture = OutputCapture(crew, events, Echo(log.fileno()), SecretMask(), 10, 65536)
        capture.start()
        upload = ArtifactUploader(lambda: client, events, deadline, str(tmp_path), {}, 1.0)
        deadline.bring_forward(0)

        def verdict(report: dict[str, object] | None) -> RunVerdict:
            return decide(1 << 8, report, None, None, False, None)

        sender = EventSender(client, events, deadline)
        shutdown = Shutdown(
            client, capture, events, sender, upload, deadline, verdict, 1, 1, str(tmp_path / "log"), False
        )
        shutdown.run()
        capture.join()
    ended = json.loads((tmp_path / "log").read_text())
    assert (shutdown.code, ended["reason"], ended["message"]) == (
        EXIT_UNAVAILABLE,
        "ImportError",
        "no module",
    )
