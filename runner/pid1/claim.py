"""The claim: the first call of the runner; crew code starts only after a grant. Called by `main`."""

from __future__ import annotations

from runner.pid1.api.backoff import delay
from runner.pid1.api.client import RunAPIClient, jitter, json_object, now
from runner.pid1.api.http import HTTPConnectionError, HTTPResponse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

_CLAIM_TIMEOUT_SECONDS = 5.0
_MIN_CLAIM_TIMEOUT_SECONDS = 0.1
WAITED = "the facade let this run wait for a place"
"""Protocol text: the controller matches it in the termination message to tell a wait from a failure."""
_DEFAULT_LIMITS = {
    "event_bytes": 65536, "log_lines": 1_000_000, "artifacts": 1000, "artifact_bytes": 1 << 30,
    "output_bytes": 32768,
}  # fmt: skip


class ClaimGrant:
    """A granted claim with the task and its limits. `granted_at` is on the monotonic clock, in seconds."""

    def __init__(self, response: dict[str, object], granted_at: float) -> None:
        """Read the response. Raises ValueError if it lacks a required field."""
        self.granted_at = granted_at
        self.entrypoint = str(response.get("entrypoint") or "")
        self.framework = str(response.get("framework") or "python")
        self.input = response.get("input")
        timeout = response.get("timeout_seconds")
        limits = response.get("limits")
        if not isinstance(timeout, int | float) or timeout <= 0 or not isinstance(self.input, dict):
            raise ValueError("the response to the claim lacks timeout_seconds or input")
        self.timeout = float(timeout)
        asking = response.get("ask_seconds")
        self.ask_seconds = float(asking) if isinstance(asking, int | float) and asking > 0 else 0.0
        granted = limits if isinstance(limits, dict) else {}
        self.config = response.get("config")
        self.context = response.get("context")
        self.budget = response.get("budget")
        self.traceparent = str(response.get("traceparent") or "")
        include = response.get("artifacts")
        self.artifacts = [str(item) for item in include] if isinstance(include, list) else []
        self.limits = {
            name: value if isinstance(value := granted.get(name), int) and value >= 0 else default
            for name, default in _DEFAULT_LIMITS.items()
        }


class ClaimRejected:
    """This pod may not run the crew."""

    def __init__(self, reason: str) -> None:
        self.reason = reason


class NotClaimed:
    """The API was unavailable until the start timeout, or the pod was stopped before the claim."""

    def __init__(self, message: str, stopped: bool) -> None:
        self.message = message
        self.stopped = stopped


def claim(
    client: RunAPIClient, deadline: float, pause: Callable[[float], bool]
) -> ClaimGrant | ClaimRejected | NotClaimed:
    """Claim the run with one nonce until the API decides or `deadline` (monotonic seconds) has passed.

    `pause(seconds)` returns True if the pod is requested to stop.
    """
    attempt = 0
    waited = False
    problem = ""
    while True:
        attempt += 1
        wait = delay(attempt, jitter())
        try:
            response = client.claim(
                max(_MIN_CLAIM_TIMEOUT_SECONDS, min(_CLAIM_TIMEOUT_SECONDS, deadline - now()))
            )
        except HTTPConnectionError as error:
            # One that the deadline has cut short says less than those before.
            if not problem or deadline - now() >= _MIN_CLAIM_TIMEOUT_SECONDS:
                problem = f"the API did not respond: {error}"
        else:
            outcome = parse_claim_response(response, now())
            if isinstance(outcome, ClaimGrant | ClaimRejected):
                return outcome
            if isinstance(outcome, float):
                attempt, wait, problem, waited = 0, outcome, WAITED, True
            else:
                problem = outcome
        if pause(max(0.0, min(wait, deadline - now()))):
            return NotClaimed("the pod was stopped before the run was claimed", stopped=True)
        if now() >= deadline:
            return NotClaimed(f"{WAITED}, last: {problem}" if waited else problem, stopped=False)


def parse_claim_response(
    response: HTTPResponse, granted_at: float
) -> ClaimGrant | ClaimRejected | float | str:
    """Return the grant, the denial, seconds to wait, or the problem after which to retry. Pure."""
    if response.status in (401, 404):
        return ClaimRejected(f"the API responded {response.status} to the claim")
    if response.status != 200:
        return f"the API responded {response.status} to the claim"
    fields = json_object(response)
    state = fields.get("state")
    if state == "granted":
        try:
            return ClaimGrant(fields, granted_at)
        except ValueError as error:
            return str(error)
    if state == "refused":
        return ClaimRejected(str(fields.get("reason") or "no reason was given"))
    if state == "wait":
        seconds = fields.get("retry_after_seconds")
        return min(30.0, max(0.05, float(seconds))) if isinstance(seconds, int | float) else 0.5
    return "the response to the claim has an unknown state"
