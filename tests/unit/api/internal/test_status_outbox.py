"""The status patch of a Run, and when no write is left. Pure."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from api.internal.context import PodApiError
from api.internal.result import status_result
from api.internal.status_outbox import COALESCE_WINDOW, is_coalescing, is_settled, status_patch
from api.store.index.claims.claims import ClaimRow

CLAIM = ClaimRow("run-a", "uid", "pod", datetime(2026, 11, 21, 10, 0, 0, 5, UTC), None)
SENT = {"outcome": "failed", "duration_ms": 7, "artifacts": {"count": 0, "bytes": 0}}


def test_status_patch_has_uid_precondition() -> None:
    claim = {"podUid": "pod", "time": "2026-11-21T10:00:00.000005Z"}
    assert status_patch(CLAIM) == {"metadata": {"uid": "uid"}, "status": {"claim": claim}}


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (None, True),
        ({"metadata": {"uid": "other"}}, True),
        ({"metadata": {"uid": "uid"}, "status": {"phase": "Failed"}}, True),
        ({"metadata": {"uid": "uid"}, "status": {"phase": "Running"}}, False),
        ({"metadata": {"uid": "uid"}}, False),
    ],
)
def test_is_settled(found: Any, expected: bool) -> None:
    assert is_settled(CLAIM, found) is expected


@pytest.mark.parametrize(
    ("age", "result", "expected"),
    [
        (timedelta(0), None, True),
        (COALESCE_WINDOW, None, False),
        (timedelta(0), {"outcome": "succeeded"}, False),
        (timedelta(hours=-1), None, False),
    ],
)
def test_is_coalescing(age: timedelta, result: Any, expected: bool) -> None:
    assert is_coalescing(replace(CLAIM, result=result), CLAIM.granted_at + age) is expected


def test_status_result_is_truncated() -> None:
    sent = {**SENT, "reason": "R" * 99, "message": "m" * 9999, "output": {"a": "ä", "b": 1}}
    assert status_result(sent, 32768) == {
        "outcome": "failed",
        "durationMs": 7,
        "artifacts": {"count": 0, "bytes": 0},
        "reason": "R" * 64,
        "message": "m" * 4096,
        "output": '{"a":"ä","b":1}',
    }


def test_an_output_of_the_largest_size_is_accepted() -> None:
    assert status_result({**SENT, "output": "x" * 8}, 10)["output"] == '"xxxxxxxx"'


@pytest.mark.parametrize(
    "wrong",
    [
        {"outcome": "great"},
        {"duration_ms": -1},
        {"duration_ms": True},
        {"artifacts": None},
        {"artifacts": {"count": 1}},
        {"output": "x" * 32767},
        {"output": json.loads("[" * 300 + "]" * 300)},
    ],
)
def test_malformed_result_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(PodApiError) as refusal:
        status_result({**SENT, **wrong}, 32768)
    assert refusal.value.status == 400
