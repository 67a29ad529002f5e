"""The claim: the runner's first act, and the only thing that lets the crew's code start. Called by `main`."""

from __future__ import annotations

from runner.pid1.api.backoff import delay
from runner.pid1.api.client import Facade, chance, now, parsed
from runner.pid1.api.http import Answer, WireError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

_TRY = 5.0
WAITED = "the facade let this run wait for a place"
"""The controller knows by these words, in the termination message, that nothing has failed."""
_LIMITS = {
    "event_bytes": 65536, "log_lines": 1_000_000, "artifacts": 1000, "artifact_bytes": 1 << 30,
    "output_bytes": 32768,
}  # fmt: skip


class Granted:
    """What the facade gave with the claim. `at` is the monotonic second of the grant."""

    def __init__(self, answer: dict[str, object], at: float) -> None:
        """Raises ValueError where the answer lacks what a run needs."""
        self.at = at
        self.entrypoint = str(answer.get("entrypoint") or "")
        self.framework = str(answer.get("framework") or "python")
        self.input = answer.get("input")
        timeout = answer.get("timeout_seconds")
        limits = answer.get("limits")
        if not isinstance(timeout, int | float) or timeout <= 0 or not isinstance(self.input, dict):
            raise ValueError("the claim's answer lacks timeout_seconds or input")
        self.timeout = float(timeout)
        given = limits if isinstance(limits, dict) else {}
        self.limits = {
            name: value if isinstance(value := given.get(name), int) and value >= 0 else default
            for name, default in _LIMITS.items()
        }


class Refused:
    """This pod may not run the crew."""

    def __init__(self, reason: str) -> None:
        self.reason = reason


class NotClaimed:
    """The facade was away until the start timeout, or the pod was stopped first."""

    def __init__(self, message: str, stopped: bool) -> None:
        self.message = message
        self.stopped = stopped


def claim(facade: Facade, until: float, pause: Callable[[float], bool]) -> Granted | Refused | NotClaimed:
    """Asks with one nonce until there is an answer or `until` (monotonic) has passed.

    `pause(seconds)` is true when the pod is asked to stop.
    """
    attempt = 0
    waited = False
    while True:
        attempt += 1
        wait = delay(attempt, chance())
        try:
            answer = facade.claim(max(0.1, min(_TRY, until - now())))
        except WireError as error:
            trouble = f"the facade did not answer: {error}"
        else:
            said = understand(answer, now())
            if isinstance(said, Granted | Refused):
                return said
            if isinstance(said, float):
                attempt, wait, trouble, waited = 0, said, WAITED, True
            else:
                trouble = said
        if pause(max(0.0, min(wait, until - now()))):
            return NotClaimed("the pod was stopped before the run was claimed", stopped=True)
        if now() >= until:
            return NotClaimed(f"{WAITED}, last: {trouble}" if waited else trouble, stopped=False)


def understand(answer: Answer, at: float) -> Granted | Refused | float | str:
    """Granted, Refused, seconds to wait, or the trouble after which to try again. Pure."""
    if answer.status in (401, 404):
        return Refused(f"the facade answered {answer.status} to the claim")
    if answer.status != 200:
        return f"the facade answered {answer.status} to the claim"
    said = parsed(answer)
    state = said.get("state")
    if state == "granted":
        try:
            return Granted(said, at)
        except ValueError as error:
            return str(error)
    if state == "refused":
        return Refused(str(said.get("reason") or "no reason was given"))
    if state == "wait":
        seconds = said.get("retry_after_seconds")
        return min(30.0, max(0.05, float(seconds))) if isinstance(seconds, int | float) else 0.5
    return "the facade's answer to the claim was not understood"
