"""Conditions of a Project: whether its source can be read. Pure. Called by `controller.project.decide`.

Messages contain no times, so an idle Project is never written to.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from controller.project.coalesce import short_commits
from controller.runtime.decision import ObjectEvent
from controller.source.observed import ObservedSource
from crds import conditions
from crds.conditions import Condition
from crds.objects import Project
from crds.runs import budget
from crds.schedules.schedule import Schedule

NO_SOURCE = "NoSource"
SUSPENDED = "Suspended"
RESOLVED = "Resolved"
DEPLOYMENT_REFUSED = "DeploymentRefused"
ABOVE_CEILING = "AboveCeiling"
EGRESS_REFUSED = "EgressRefused"
WARM_POD_FAILED = "WarmPodFailed"
DELIVERY_FAILED = "DeliveryFailed"
_WITH_EVENTS = (conditions.BUDGET_EXCEEDED, conditions.NOTIFICATIONS_FAILING)
"""Conditions with an Event for each new reason."""
SKIPPED = "Not built, since newer ones followed: "
"""Stored in status messages and read back after a restart: do not change."""


def conditions_of(
    project: Project,
    observed: ObservedSource | None,
    now: datetime,
    coalescing: bool = False,
    more: Sequence[Condition] = (),
    refusal: str = "",
) -> tuple[dict[str, Any], list[ObjectEvent]]:
    """Return the status fields, and an Event for a new problem; empty before the first poll.

    `coalescing`: the head waits for the end of the coalescing window. `more`: conditions of other things.
    `refusal`: why the kube-apiserver refuses the Deployment of the head.
    """
    wanted = _conditions(project, observed, coalescing, refusal)
    if wanted is None:
        return {}, []
    wanted.extend(more)
    if (failure := project.status.get("warm")) is not None:
        wanted.append(_warm_condition(failure))
    old = conditions.find(project.conditions, conditions.READY) or {}
    new = wanted[0]
    notes = []
    if new.status is False and old.get("reason") != new.reason:
        notes.append(ObjectEvent(new.reason, new.message, True))
    for one in more:
        if one.type in _WITH_EVENTS:
            previous = (conditions.find(project.conditions, one.type) or {}).get("reason")
            notes.extend([ObjectEvent(one.reason, one.message, True)] if one.reason != previous else ())
    return {
        "observedGeneration": project.generation,
        "conditions": conditions.merge(project.conditions, wanted, project.generation, now),
    }, notes


def limited_condition(lowered: Sequence[str], refused_egress: Sequence[str]) -> Condition | None:
    """Return the condition that names what a project does not get, and the next step; None if it gets all.

    `lowered`: what is less than the spec asks for. `refused_egress`: what of `run.egress` does not apply.
    """
    if not lowered and not refused_egress:
        return None
    sentences: list[str] = []
    if refused_egress:
        advice = (
            "Correct it, or ask the operator to allow it: in CREWYARD_RUN_EGRESS, or the controller's role."
        )
        sentences.append(f"{'; '.join(refused_egress)}. {advice}")
    if lowered:
        settings = "CREWYARD_PODS, CREWYARD_LIMITS or CREWYARD_PLANS"
        advice = f"Change the fields, or ask the operator to change {settings}."
        sentences.append(f"{'; '.join(lowered)}. {advice}")
    reason = EGRESS_REFUSED if refused_egress else ABOVE_CEILING
    return Condition(conditions.LIMITED, True, reason, " ".join(sentences))


def _warm_condition(failure: Mapping[str, Any]) -> Condition:
    advice = (
        "Until then each run starts in a new pod, and reports the error of the import itself. "
        "The controller tries another waiting pod later."
    )
    return Condition(conditions.WARM_PODS_FAILING, True, WARM_POD_FAILED, f"{failure['message']} {advice}")


def budget_condition(project: Project, now: datetime) -> Condition | None:
    """Return the condition of a budget that is nearly or wholly used in this month, else None."""
    problem = budget.month_problem(project, budget.recorded_use(project), now)
    if problem is None:
        return None
    return Condition(conditions.BUDGET_EXCEEDED, problem.exceeded, problem.reason, problem.message)


def schedules_condition(project: Project) -> Condition | None:
    """Return the condition that says why schedules start no runs; None if all of them can."""
    problems = [problem for one in project.spec.get("schedules") or () if (problem := Schedule(one).problem)]
    if not problems:
        return None
    return Condition(conditions.SCHEDULES_INVALID, True, conditions.SCHEDULE_INVALID, "; ".join(problems))


def notifications_condition(project: Project) -> Condition | None:
    """Return the condition that names the notifications which no receiver takes; None without one."""
    names = project.failing_notifications
    if not names:
        return None
    return Condition(
        conditions.NOTIFICATIONS_FAILING,
        True,
        DELIVERY_FAILED,
        f"{', '.join(names)}: the receiver took no message for 24 hours. Correct it; crewyard notifications "
        f"list -p {project.name} shows its errors, and crewyard notifications redeliver sends a message "
        "again.",
    )


def _conditions(
    project: Project, observed: ObservedSource | None, coalescing: bool, refusal: str
) -> list[Condition] | None:
    if project.git is None:
        message = "No git source; deployments are uploaded."
        return [Condition(conditions.READY, True, NO_SOURCE, message)]
    if project.git.get("suspend"):
        message = "Polling is suspended until spec.source.git.suspend is false."
        return [
            Condition(conditions.READY, True, SUSPENDED, message),
            Condition(conditions.SOURCE_RESOLVED, None, SUSPENDED, message),
        ]
    if observed is None:
        return None
    if observed.problem is None:
        message = _head_message(project, observed, coalescing)
        if refusal:
            refused = f"{message} The kube-apiserver refuses its Deployment, will retry: {refusal}"
            return [
                Condition(conditions.READY, False, DEPLOYMENT_REFUSED, refused),
                Condition(conditions.SOURCE_RESOLVED, True, RESOLVED, message),
                Condition(conditions.RECONCILING, True, DEPLOYMENT_REFUSED, refused),
            ]
        return [
            Condition(conditions.READY, True, RESOLVED, message),
            Condition(conditions.SOURCE_RESOLVED, True, RESOLVED, message),
        ]
    problem = observed.problem
    kind = conditions.RECONCILING if problem.transient else conditions.STALLED
    return [
        Condition(conditions.READY, False, problem.reason, problem.message),
        Condition(conditions.SOURCE_RESOLVED, False, problem.reason, problem.message),
        Condition(kind, True, problem.reason, problem.message),
    ]


def _head_message(project: Project, observed: ObservedSource, coalescing: bool) -> str:
    """Return the head, and the commits skipped before it while it stays there."""
    message = (
        f"{observed.name} is at {observed.commit}."
        if observed.name != observed.commit
        else f"At {observed.commit}."
    )
    if coalescing:
        message = f"{message} Waiting a moment for further commits before deploying it."
    if observed.skipped:
        return f"{message} {SKIPPED}{short_commits(observed.skipped)}."
    resolved = conditions.find(project.conditions, conditions.SOURCE_RESOLVED) or {}
    previous = str(resolved.get("message", ""))
    # After a restart the skipped commits are not cached; the previous message is still true.
    still_true = previous.startswith(message) and not coalescing
    return previous if still_true and previous[len(message) :].startswith(f" {SKIPPED}") else message
