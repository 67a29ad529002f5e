"""Decision about a Project whose name another namespace has. Pure. Called by the reconciler of Projects."""

from datetime import datetime

from controller.runtime.decision import Decision, ObjectEvent
from crds import conditions
from crds.conditions import NAME_TAKEN, Condition
from crds.objects import Project

MESSAGE = (
    "A project of this name exists in another namespace, and is older. Nothing of this one is built or run. "
    "Delete it, and create it under another name."
)
"""Does not tell which namespace: its readers may not know of others."""


def decide(project: Project, now: datetime) -> Decision:
    """Return the Decision: a status that says why nothing happens."""
    wanted = [
        Condition(conditions.READY, False, NAME_TAKEN, MESSAGE),
        Condition(conditions.STALLED, True, NAME_TAKEN, MESSAGE),
    ]
    is_known = (conditions.find(project.conditions, conditions.READY) or {}).get("reason") == NAME_TAKEN
    status = {
        "observedGeneration": project.generation,
        "conditions": conditions.merge(project.conditions, wanted, project.generation, now),
    }
    return Decision(status=status, events=() if is_known else (ObjectEvent(NAME_TAKEN, MESSAGE, True),))
