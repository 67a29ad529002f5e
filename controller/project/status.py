"""The conditions of a Project, which say whether its source can be read. Pure.

Nothing here changes while nothing happens: messages hold no times, so that an
idle Project is never written to.
"""

from datetime import datetime
from typing import Any

from controller.project.coalesce import commits
from controller.runtime.decision import Note
from controller.source.observed import Look
from crds import conditions
from crds.conditions import Condition
from crds.objects import Project

NO_SOURCE = "NoSource"
SUSPENDED = "Suspended"
RESOLVED = "Resolved"
SKIPPED = "Not built, since newer ones followed: "


def conditions_of(
    project: Project, look: Look | None, now: datetime, held: bool = False
) -> tuple[dict[str, Any], list[Note]]:
    """The status fields to write, and an Event where a problem appeared; nothing before the first look.

    `held`: the head waits, since the last deployment is hardly begun.
    """
    wanted = _wanted(project, look, held)
    if wanted is None:
        return {}, []
    old = conditions.find(project.conditions, conditions.READY) or {}
    new = wanted[0]
    notes = []
    if new.status is False and old.get("reason") != new.reason:
        notes.append(Note(new.reason, new.message, True))
    return {
        "observedGeneration": project.generation,
        "conditions": conditions.merge(project.conditions, wanted, project.generation, now),
    }, notes


def _wanted(project: Project, look: Look | None, held: bool) -> list[Condition] | None:
    if project.git is None:
        message = "There is no git source; deployments are uploaded."
        return [Condition(conditions.READY, True, NO_SOURCE, message)]
    if project.git.get("suspend"):
        message = "The repository is not looked at until spec.source.git.suspend is false."
        return [
            Condition(conditions.READY, True, SUSPENDED, message),
            Condition(conditions.SOURCE_RESOLVED, None, SUSPENDED, message),
        ]
    if look is None:
        return None
    if look.problem is None:
        message = _found(project, look, held)
        return [
            Condition(conditions.READY, True, RESOLVED, message),
            Condition(conditions.SOURCE_RESOLVED, True, RESOLVED, message),
        ]
    problem = look.problem
    kind = conditions.RECONCILING if problem.passing else conditions.STALLED
    return [
        Condition(conditions.READY, False, problem.reason, problem.message),
        Condition(conditions.SOURCE_RESOLVED, False, problem.reason, problem.message),
        Condition(kind, True, problem.reason, problem.message),
    ]


def _found(project: Project, look: Look, held: bool) -> str:
    """Where the head is, and which commits before it were not built, as long as it stays there."""
    message = f"{look.name} is at {look.commit}." if look.name != look.commit else f"At {look.commit}."
    if held:
        message = f"{message} It is deployed in some seconds, when the last deployment is no longer new."
    if look.skipped:
        return f"{message} {SKIPPED}{commits(look.skipped)}."
    said = str((conditions.find(project.conditions, conditions.READY) or {}).get("message", ""))
    # After a restart nobody remembers; what was said is still true.
    kept = said.startswith(message) and not held
    return said if kept and said[len(message) :].startswith(f" {SKIPPED}") else message
