"""The least that can be written of an end whose full text the apiserver finds invalid. Pure.

An end must be written whatever a crew, a build or a node said: an object that
cannot end holds its place for ever. Called by `controller.runtime.apply`.
"""

import re
from collections.abc import Mapping
from typing import Any

from crds.reasons import RUN_ENDS, DeploymentPhase

ENDS = RUN_ENDS | {str(DeploymentPhase.FAILED)}
MAX_TEXT = 500
MAX_NUMBER = 1 << 53
_WORD = re.compile(r"[^A-Za-z0-9]")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?Z")


def minimal_end(wanted: Mapping[str, Any]) -> dict[str, Any] | None:
    """Phase, conditions, error and times of an end, with short and plain texts; None where it is no end."""
    if wanted.get("phase") not in ENDS:
        return None
    least: dict[str, Any] = {"phase": wanted["phase"]}
    least["conditions"] = [_condition(condition) for condition in wanted.get("conditions") or ()]
    error = wanted.get("error")
    if error:
        least["error"] = {"reason": word(error.get("reason"))[:64], "message": plain(error.get("message"))}
    for name in ("startTime", "completionTime"):
        if _TIME.fullmatch(str(wanted.get(name))):
            least[name] = wanted[name]
    duration = wanted.get("durationMs")
    if isinstance(duration, int) and 0 <= duration < MAX_NUMBER:
        least["durationMs"] = duration
    return least


def word(text: object) -> str:
    """A reason as one word."""
    found = _WORD.sub("", str(text or ""))[:128]
    return found if found[:1].isalpha() else f"Reason{found}"[:128]


def plain(text: object) -> str:
    """A short text of printable characters."""
    cut = str(text or "")[:MAX_TEXT]
    return "".join(letter if letter.isprintable() else " " for letter in cut)


def _condition(condition: Mapping[str, Any]) -> dict[str, Any]:
    return {**condition, "reason": word(condition.get("reason")), "message": plain(condition.get("message"))}
