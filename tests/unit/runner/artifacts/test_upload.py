"""The uploader: counting files while other threads store theirs, and unexpected errors."""

from __future__ import annotations

import sys
import threading
from types import SimpleNamespace
from typing import Any

import pytest

from runner.pid1.artifacts import files
from runner.pid1.artifacts.upload import ArtifactUploader
from runner.pid1.deadline import Deadline


def uploader() -> ArtifactUploader:
    limits = {"artifacts": 10**9, "artifact_bytes": 10**12}
    return ArtifactUploader(lambda: None, None, Deadline(), "/nowhere", limits, 0.0)  # type: ignore[arg-type,return-value]


def test_an_unexpected_error_reports_files_as_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_root: str, _skip: Any = None) -> Any:
        raise ValueError("what is this")

    monkeypatch.setattr(files, "scan", broken)
    upload = uploader()
    upload.run()
    assert upload.failure == "ValueError: what is this"


def test_counting_stored_files_tolerates_concurrent_uploads() -> None:
    upload = uploader()
    upload.stored = {str(number): (1, "") for number in range(2000)}
    candidate: Any = SimpleNamespace(name="one", size=1)
    done = threading.Event()

    def store() -> None:
        while not done.is_set():
            for number in range(40):
                upload.stored[f"more {number}"] = (1, "")
            for number in range(40):
                del upload.stored[f"more {number}"]

    before, other = sys.getswitchinterval(), threading.Thread(target=store)
    sys.setswitchinterval(1e-6)
    other.start()
    try:
        assert all(upload._fits(candidate, 0, 0) for _ in range(200))
    finally:
        done.set()
        other.join()
        sys.setswitchinterval(before)
