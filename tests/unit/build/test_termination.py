"""Termination message of a build pod."""

import json

from hypothesis import given, settings
from hypothesis import strategies as st

from build.termination import termination_message


@settings(deadline=None)
@given(st.text(max_size=6000), st.text(max_size=6000))
def test_message_is_json_within_the_limit(message: str, hint: str) -> None:
    result = {"outcome": "failed", "reason": "ConfigInvalid", "message": message, "hint": hint}
    text = termination_message(result)
    assert len(text.encode()) <= 4096
    assert json.loads(text)["reason"] == "ConfigInvalid"


@settings(deadline=None)
@given(st.text(max_size=5000), st.text(max_size=3000))
def test_log_is_truncated_before_the_message(log: str, message: str) -> None:
    text = termination_message({"reason": "X", "message": message, "log": log})
    assert len(text.encode()) <= 4096
    kept = json.loads(text)
    if kept["message"] != message:
        assert kept["log"] == ""
    assert log.endswith(kept["log"].removeprefix("…"))


def test_short_message_is_unchanged() -> None:
    result = {"outcome": "built", "image": "x@sha256:1", "message": "é" * 100}
    assert json.loads(termination_message(result)) == result


def test_start_of_a_long_message_remains() -> None:
    text = termination_message({"message": "begin " + "\n" * 9000, "hint": "do it"})
    assert json.loads(text)["message"].startswith("begin ")
    assert json.loads(text)["hint"] == "do it"
