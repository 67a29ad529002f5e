"""Storing files: the count of them while other lanes store theirs, and a failure that nobody expects."""

from __future__ import annotations

import sys
import threading
from types import SimpleNamespace
from typing import Any

import pytest

from runner.pid1.artifacts import files
from runner.pid1.artifacts.upload import Upload
from runner.pid1.deadline import Until


def made() -> Upload:
    limits = {"artifacts": 10**9, "artifact_bytes": 10**12}
    return Upload(lambda: None, None, Until(), "/nowhere", limits, 0.0)  # type: ignore[arg-type,return-value]


def test_a_failure_that_nobody_expects_says_that_files_are_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_root: str) -> Any:
        raise ValueError("what is this")

    monkeypatch.setattr(files, "scan", broken)
    upload = made()
    upload.run()
    assert upload.away == "ValueError: what is this"


def test_counting_what_is_stored_bears_that_more_is_stored() -> None:
    upload = made()
    upload.stored = {str(number): (1, "") for number in range(2000)}
    one: Any = SimpleNamespace(name="one", size=1)
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
        assert all(upload._fits(one, 0, 0) for _ in range(200))
    finally:
        done.set()
        other.join()
        sys.setswitchinterval(before)
