"""The claim: only a grant starts crew code."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from runner.pid1.api.http import HTTPConnectionError, HTTPResponse
from runner.pid1.claim import (
    WAITED,
    ClaimGrant,
    ClaimRejected,
    NotClaimed,
    claim,
    parse_claim_response,
)

CREW = """
    open("artifacts/started", "w").close()

    def kickoff():
        return "ran"
"""
GRANTED = {"state": "granted", "entrypoint": "a:b", "input": {}, "timeout_seconds": 5}


def _parse(value: Any, status: int = 200) -> Any:
    return parse_claim_response(
        HTTPResponse(status, value if isinstance(value, bytes) else json.dumps(value).encode()), 7.0
    )


def test_a_grant_carries_the_task_and_limits_fall_back() -> None:
    outcome = _parse({**GRANTED, "limits": {"artifacts": 3, "log_lines": "many"}})
    assert isinstance(outcome, ClaimGrant)
    assert (outcome.granted_at, outcome.timeout, outcome.framework) == (7.0, 5.0, "python")
    assert (outcome.limits["artifacts"], outcome.limits["log_lines"]) == (3, 1_000_000)


@pytest.mark.parametrize("status", [401, 404])
def test_an_unknown_token_or_run_is_a_denial(status: int) -> None:
    assert isinstance(_parse({"error": {}}, status), ClaimRejected)


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
def test_an_invalid_response_is_retried(value: Any, status: int) -> None:
    assert isinstance(_parse(value, status), str)


def test_wait_is_bounded() -> None:
    assert _parse({"state": "wait", "retry_after_seconds": 0.5}) == 0.5
    assert _parse({"state": "wait", "retry_after_seconds": 10**9}) == 30.0
    assert _parse({"state": "wait"}) == 0.5


async def test_after_a_denial_no_crew_code_is_executed(pod: Any, api: Any) -> None:
    pod.crew(CREW)
    pod.crew("open('artifacts/site', 'w').close()", "sitecustomize.py")
    api.claim_states = [{"state": "refused", "reason": "claimed by another pod"}]
    ended = await pod.run()
    assert (ended.code, list((pod.app / "artifacts").iterdir())) == (77, [])
    assert "claimed by another pod" in ended.termination["message"]
    assert ended.termination["reported"] is False


async def test_wait_and_errors_are_followed_by_the_same_claim(pod: Any, api: Any) -> None:
    pod.crew(CREW)
    api.claim_states = [503, {"state": "wait", "retry_after_seconds": 0.05}, 500]
    ended = await pod.run()
    assert (ended.code, api.claims, api.result["output"]) == (0, 4, "ran")


async def test_an_api_that_starts_late_is_awaited(pod: Any, api: Any) -> None:
    pod.crew(CREW)
    await api.stop()
    await pod.start()
    await asyncio.sleep(0.6)
    await api.start()
    assert (await pod.wait()).code == 0


async def test_an_unreachable_api_ends_the_pod_at_the_start_timeout(pod: Any, api: Any) -> None:
    pod.crew(CREW)
    await api.stop()
    ended = await pod.run(START_TIMEOUT="0.5")
    assert (ended.code, list((pod.app / "artifacts").iterdir())) == (78, [])
    assert 0.4 < ended.seconds < 80  # the pod of other tests has 90 s
    assert "did not respond" in ended.termination["message"]


async def test_a_pod_without_a_slot_reports_it_at_the_start_timeout(pod: Any, api: Any) -> None:
    pod.crew(CREW)
    # On a busy machine the short time may be over before the API responds.
    for seconds in ("0.8", "30"):
        api.nonce, api.claims = "", 0
        api.claim_states = [{"state": "wait", "retry_after_seconds": 0.2}] * 2 + [503] * 100
        ended = await pod.run(START_TIMEOUT=seconds)
        if WAITED in ended.termination["message"]:
            break
    assert (ended.code, list((pod.app / "artifacts").iterdir())) == (78, [])
    assert WAITED in ended.termination["message"]


async def test_a_pod_stopped_before_its_claim_exits_immediately(pod: Any, api: Any) -> None:
    pod.crew(CREW)
    await api.stop()
    await pod.start()
    # After its first line the runner blocks the signal, so it stays pending.
    await pod.process.stderr.readline()
    await asyncio.sleep(0.4)
    pod.terminate()
    ended = await pod.wait()
    assert (ended.code, ended.termination["outcome"]) == (78, "stopped")
    assert ended.seconds < 80  # its start timeout is 90 s


async def test_a_missing_variable_is_named(pod: Any) -> None:
    ended = await pod.run(TOKEN="")
    assert ended.code == 70
    assert "CREWYARD_TOKEN is not set" in ended.termination["message"]


class FailingAPI:
    """An API whose claims take the given seconds and fail as given; one beyond its timeout times out."""

    def __init__(self, *claims: tuple[float, int | str]) -> None:
        self.now, self.claims = 0.0, list(claims)

    def claim(self, timeout: float) -> HTTPResponse:
        seconds, failure = self.claims.pop(0) if len(self.claims) > 1 else self.claims[0]
        self.now += min(seconds, timeout)
        if seconds > timeout:
            raise HTTPConnectionError("timed out")
        if isinstance(failure, str):
            raise HTTPConnectionError(failure)
        return HTTPResponse(failure, b"")

    def pause(self, seconds: float) -> bool:
        self.now += seconds
        return False


@pytest.mark.parametrize(
    ("claims", "problem"),
    [
        ([(4.0, 503), (9.0, 503)], "the API responded 503 to the claim"),
        ([(4.0, "connection refused"), (9.0, 503)], "the API did not respond: connection refused"),
        ([(4.0, 503), (0.1, "connection refused"), (0.1, 500)], "the API responded 500 to the claim"),
        ([(99.0, 503)], "the API did not respond: timed out"),
    ],
)
def test_a_claim_cut_by_the_deadline_keeps_the_earlier_problem(
    monkeypatch: pytest.MonkeyPatch, claims: list[tuple[float, int | str]], problem: str
) -> None:
    api = FailingAPI(*claims)
    monkeypatch.setattr("runner.pid1.claim.now", lambda: api.now)
    outcome = claim(api, 8.0, api.pause)  # type: ignore[arg-type]
    assert isinstance(outcome, NotClaimed) and not outcome.stopped
    assert outcome.message == problem
