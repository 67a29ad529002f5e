"""What a response means, and how long the exporter waits."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from api.telemetry.attempt import (
    MAX_BACKOFF_SECONDS,
    MAX_RETRY_AFTER_SECONDS,
    ExportResult,
    of_status,
    pause_seconds,
    retry_after_seconds,
)

NOW = datetime(2026, 11, 21, 10, 0, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        (307, ExportResult.RETRIED),
        (400, ExportResult.REJECTED),
        (401, ExportResult.RETRIED),
        (404, ExportResult.RETRIED),
        (413, ExportResult.REJECTED),
        (429, ExportResult.RETRIED),
        (500, ExportResult.REJECTED),
        (502, ExportResult.RETRIED),
        (503, ExportResult.RETRIED),
        (504, ExportResult.RETRIED),
    ],
)
def test_statuses(status, expected):
    found = of_status(status, "why", "7", NOW)
    assert (found.result, found.problem) == (expected, "why")
    assert found.retry_after == (7 if expected is ExportResult.RETRIED else None)


def test_a_success_has_no_problem():
    assert of_status(200, None, "", NOW).result is ExportResult.EXPORTED


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("30", 30),
        (" 30 ", 30),
        ("0", 0),
        ("9" * 40, MAX_RETRY_AFTER_SECONDS),
        ("Sat, 21 Nov 2026 10:01:00 GMT", 60),
        ("Sat, 21 Nov 2026 09:00:00 GMT", 0),
        ("-5", None),
        ("soon", None),
        ("", None),
    ],
)
def test_retry_after_is_a_number_or_a_date(text, seconds):
    assert retry_after_seconds(text, NOW) == seconds


@given(st.text(max_size=60))
def test_any_retry_after_is_bounded(text):
    found = retry_after_seconds(text, NOW)
    assert found is None or 0 <= found <= MAX_RETRY_AFTER_SECONDS


@given(st.integers(1, 10_000), st.floats(0, 1), st.none() | st.floats(0, MAX_RETRY_AFTER_SECONDS))
def test_pauses_grow_are_bounded_and_respect_the_receiver(failures, random, asked):
    pause = pause_seconds(failures, asked, random)
    assert max(4.0, asked or 0) <= pause <= max(1.2 * MAX_BACKOFF_SECONDS, asked or 0)
    assert pause_seconds(failures + 1, asked, 0.5) >= pause_seconds(failures, asked, 0.5)
