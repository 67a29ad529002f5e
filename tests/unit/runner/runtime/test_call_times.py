"""Durations of calls of models, by a clock of the test."""

from __future__ import annotations

import pytest

from runner.crewyard_runtime.frameworks import call_times
from runner.crewyard_runtime.frameworks.call_times import CallTimes


def times_at(*moments: int) -> CallTimes:
    return CallTimes(iter(moments).__next__)


def test_calls_may_overlap_and_each_ends_once() -> None:
    times = times_at(1_000_000, 2_000_000, 7_999_999, 1_502_000_000)
    times.begin("a")
    times.begin("b")
    assert times.end("a") == {"duration_ms": 6}
    assert times.end("a") == {}
    assert times.end("b") == {"duration_ms": 1500}


def test_a_repeated_call_starts_again() -> None:
    times = times_at(0, 5_000_000, 7_000_000)
    times.begin("a")
    times.begin("a")
    assert times.end("a") == {"duration_ms": 2}


def test_calls_without_an_end_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(call_times, "MAX_OPEN_CALLS", 2)
    times = CallTimes()
    for call in range(100):
        times.begin(call)
    assert [call for call in range(100) if times.end(call)] == [98, 99]
