"""The conditions of a Project, which say whether its source can be read. Pure.

Nothing here changes while nothing happens: messages hold no times, so that an
idle Project is never written to.
"""

from datetime import datetime
from typing import Any

from controller.decision import Note
from controller.project.looks import Look
from crds import conditions
from crds.conditions import Condition
from crds.objects import Project

NO_SOURCE = "NoSource"
SUSPENDED = "Suspended"
RESOLVED = "Resolved"


def conditions_of(project: Project, look: Look | None, now: datetime) -> tuple[dict[str, Any], list[Note]]:
    """The status fields to write, and an Event where a problem appeared; nothing before the first look."""
    wanted = _wanted(project, look)
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


def _wanted(project: Project, look: Look | None) -> list[Condition] | None:
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
        message = f"{look.name} is at {look.commit}." if look.name != look.commit else f"At {look.commit}."
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
