"""Minimal final status for one that the apiserver rejects as invalid. Pure.

A final status must be written for any text of a crew, a build or a node: an object that
cannot finish would occupy its slot permanently. Called by `controller.runtime.apply`.
"""

import re
from collections.abc import Mapping
from typing import Any

from crds.reasons import TERMINAL_RUN_PHASES, DeploymentPhase

FINAL_PHASES = TERMINAL_RUN_PHASES | {str(DeploymentPhase.FAILED)}
MAX_TEXT_LENGTH = 500
MAX_NUMBER = 1 << 53
_WORD = re.compile(r"[^A-Za-z0-9]")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?Z")


def minimal_status(desired: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return phase, conditions, error and times with short plain texts; None if the phase is not final."""
    if desired.get("phase") not in FINAL_PHASES:
        return None
    fallback: dict[str, Any] = {"phase": desired["phase"]}
    fallback["conditions"] = [_condition(condition) for condition in desired.get("conditions") or ()]
    error = desired.get("error")
    if error:
        fallback["error"] = {
            "reason": reason_word(error.get("reason"))[:64],
            "message": printable(error.get("message")),
        }
    for name in ("startTime", "completionTime"):
        if _TIME.fullmatch(str(desired.get(name))):
            fallback[name] = desired[name]
    duration = desired.get("durationMs")
    if isinstance(duration, int) and 0 <= duration < MAX_NUMBER:
        fallback["durationMs"] = duration
    return fallback


def reason_word(text: object) -> str:
    """Return a reason as one valid word."""
    word = _WORD.sub("", str(text or ""))[:128]
    return word if word[:1].isalpha() else f"Reason{word}"[:128]


def printable(text: object) -> str:
    """Return a short text of printable characters."""
    cut = str(text or "")[:MAX_TEXT_LENGTH]
    return "".join(letter if letter.isprintable() else " " for letter in cut)


def _condition(condition: Mapping[str, Any]) -> dict[str, Any]:
    return {
        **condition,
        "reason": reason_word(condition.get("reason")),
        "message": printable(condition.get("message")),
    }
