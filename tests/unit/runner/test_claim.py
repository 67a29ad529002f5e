"""The claim decides whether the crew's code starts at all."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from runner.pid1.api.http import Answer
from runner.pid1.claim import WAITED, Granted, Refused, understand

CREW = """
    open("artifacts/started", "w").close()

    def kickoff():
        return "ran"
"""
GRANTED = {"state": "granted", "entrypoint": "a:b", "input": {}, "timeout_seconds": 5}


def _answer(value: Any, status: int = 200) -> Any:
    return understand(Answer(status, value if isinstance(value, bytes) else json.dumps(value).encode()), 7.0)


def test_a_grant_carries_the_task_and_limits_fall_back() -> None:
    said = _answer({**GRANTED, "limits": {"artifacts": 3, "log_lines": "many"}})
    assert isinstance(said, Granted)
    assert (said.at, said.timeout, said.framework) == (7.0, 5.0, "python")
    assert (said.limits["artifacts"], said.limits["log_lines"]) == (3, 1_000_000)


@pytest.mark.parametrize("status", [401, 404])
def test_a_token_or_run_that_is_not_known_is_a_refusal(status: int) -> None:
    assert isinstance(_answer({"error": {}}, status), Refused)


@pytest.mark.parametrize(
    ("value", "status"),
    [
        (b"", 200),
        (b"[]", 200),
        ({"state": "granted"}, 200),
        ({**GRANTED, "input": None}, 200),
        (b"x", 500),
        (b"", 429),
    ],
)
def test_what_is_not_understood_is_asked_again(value: Any, status: int) -> None:
    assert isinstance(_answer(value, status), str)


def test_wait_is_bounded() -> None:
    assert _answer({"state": "wait", "retry_after_seconds": 0.5}) == 0.5
    assert _answer({"state": "wait", "retry_after_seconds": 10**9}) == 30.0
    assert _answer({"state": "wait"}) == 0.5


async def test_refused_means_that_nothing_of_the_crew_was_executed(pod: Any, facade: Any) -> None:
    pod.crew(CREW)
    pod.crew("open('artifacts/site', 'w').close()", "sitecustomize.py")
    facade.claim_states = [{"state": "refused", "reason": "claimed by another pod"}]
    ended = await pod.run()
    assert (ended.code, list((pod.app / "artifacts").iterdir())) == (77, [])
    assert "claimed by another pod" in ended.termination["message"]
    assert ended.termination["reported"] is False


async def test_wait_and_errors_are_followed_by_the_same_claim(pod: Any, facade: Any) -> None:
    pod.crew(CREW)
    facade.claim_states = [503, {"state": "wait", "retry_after_seconds": 0.05}, 500]
    ended = await pod.run()
    assert (ended.code, facade.claims, facade.result["output"]) == (0, 4, "ran")


async def test_a_facade_that_comes_late_is_waited_for(pod: Any, facade: Any) -> None:
    pod.crew(CREW)
    await facade.stop()
    await pod.start()
    await asyncio.sleep(0.6)
    await facade.start()
    assert (await pod.wait()).code == 0


async def test_a_facade_that_never_comes_ends_the_pod_at_the_start_timeout(pod: Any, facade: Any) -> None:
    pod.crew(CREW)
    await facade.stop()
    ended = await pod.run(START_TIMEOUT="0.5")
    assert (ended.code, list((pod.app / "artifacts").iterdir())) == (78, [])
    assert 0.4 < ended.seconds < 30
    assert "did not answer" in ended.termination["message"]


async def test_a_pod_without_a_place_says_so_at_the_start_timeout(pod: Any, facade: Any) -> None:
    pod.crew(CREW)
    facade.claim_states = [{"state": "wait", "retry_after_seconds": 0.2}] * 2 + [503] * 100
    ended = await pod.run(START_TIMEOUT="0.8")
    assert (ended.code, list((pod.app / "artifacts").iterdir())) == (78, [])
    assert WAITED in ended.termination["message"]


async def test_a_pod_that_is_stopped_before_its_claim_ends_at_once(pod: Any, facade: Any) -> None:
    pod.crew(CREW)
    await facade.stop()
    await pod.start()
    # A word of its own says that it keeps the signal from here on.
    await pod.process.stderr.readline()
    await asyncio.sleep(0.4)
    pod.terminate()
    ended = await pod.wait()
    assert (ended.code, ended.termination["outcome"]) == (78, "stopped")
    assert ended.seconds < 30


async def test_a_missing_variable_is_named(pod: Any) -> None:
    ended = await pod.run(TOKEN="")
    assert ended.code == 70
    assert "CREWYARD_TOKEN is not set" in ended.termination["message"]
