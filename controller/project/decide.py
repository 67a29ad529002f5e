"""Decision about one Project: Deployments for heads, orders, activation, phases. Pure.

The writes have this order, so the next reconcile completes any interrupted one: create; one patch
that raises `lastOrder` and, if the head moved, records it with the order of its Deployment; patch
orders; one status patch with the activation; phases. If the head were recorded after the orders,
the same move would undo a rollback made between them. Called by `controller.project.reconcile`.
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from controller import owner
from controller.images import policy
from controller.project import activation, coalesce, revision
from controller.project.coalesce import NO_COALESCING, CoalescingWindow
from controller.project.phases import phase_patch
from controller.project.status import (
    budget_condition,
    conditions_of,
    limited_condition,
    notifications_condition,
    schedules_condition,
)
from controller.runtime import event_map
from controller.runtime.decision import Create, Decision, ObjectEvent, Patch, difference
from controller.source.observed import ObservedSource
from crds import kinds
from crds.conditions import Condition
from crds.objects import Deployment, Project
from crds.times import format_time


def decide(
    project: Project,
    deployments: Sequence[Deployment],
    observed: ObservedSource | None,
    now: datetime,
    coalescing: CoalescingWindow = NO_COALESCING,
    lowered: Sequence[str] = (),
    refused_egress: Sequence[str] = (),
) -> Decision:
    """Return the Decision for a Project. An observation of another source than the spec's is ignored.

    `lowered` says what its pods get less than its spec asks for, `refused_egress` which entries of
    `run.egress` they do not get.
    """
    current = observed if observed is not None and observed.matches(project) else None
    has_head = current is not None and current.problem is None and project.git is not None
    resolved = revision.resolve_revision(project, deployments, current) if has_head and current else None
    orders = activation.assign_orders(project, deployments, resolved)
    create = resolved.create if resolved is not None else None
    wait = coalescing.wait(deployments, create, now) if create and resolved and resolved.moved else 0.0
    more = [
        condition
        for condition in (
            limited_condition(lowered, refused_egress),
            budget_condition(project, now),
            notifications_condition(project),
            schedules_condition(project),
        )
        if condition is not None
    ]
    status, events = _status(project, deployments, current, resolved, orders, now, wait > 0, more)
    after: list[Patch] = []
    active = status.get("activeDeployment", project.active)
    activated_at = status.get("activatedAt", project.status.get("activatedAt"))
    for deployment in deployments:
        if deployment.built and not deployment.deleting:
            after.extend(phase_patch(deployment, active, activated_at, now))
        if (deployment.built or deployment.failed) and not deployment.deleting:
            # An earlier Project of this name left it; nothing else reconciles one that has ended.
            after.extend(owner.adoption(kinds.DEPLOYMENT, deployment, project))
    if wait > 0:
        create = None
    after.extend(_superseded(deployments, resolved, orders, now))
    return Decision(
        create=(replace(create, events=_creation_events(create, current)),) if create and current else (),
        before=_order_patches(project, deployments, resolved, orders),
        status=status,
        after=tuple(after),
        events=tuple(events),
        # The next reconcile assigns the order of a created Deployment.
        enqueue=(event_map.project(project.name),) if create else (),
        requeue_after=wait or None,
    )


def _creation_events(create: Create, observed: ObservedSource) -> tuple[ObjectEvent, ...]:
    """Return the Events of a new Deployment and of the commits skipped for it."""
    created = ObjectEvent("NewCommit", f"{observed.commit} is built as {create.name}.")
    if not observed.skipped:
        return (created,)
    message = f"{coalesce.short_commits(observed.skipped)}: not built, superseded by {observed.commit[:12]}."
    return created, ObjectEvent("CommitsSkipped", message)


def _superseded(
    deployments: Sequence[Deployment],
    resolved: revision.Revision | None,
    orders: activation.Orders,
    now: datetime,
) -> list[Patch]:
    if (
        resolved is None
        or resolved.deployment is None
        or resolved.create is not None
        or resolved.deployment.failed
    ):
        return []
    return coalesce.supersede_patches(deployments, resolved.deployment, orders, now)


def _order_patches(
    project: Project,
    deployments: Sequence[Deployment],
    resolved: revision.Revision | None,
    orders: activation.Orders,
) -> tuple[Patch, ...]:
    """Patch greatest order and head first, with a precondition; then the order of each Deployment."""
    patches: list[Patch] = []
    raised: dict[str, Any] = {}
    if orders.last > project.last_order:
        raised["lastOrder"] = orders.last
    if resolved is not None and resolved.source is not None and _is_acted_on(resolved, orders):
        at = orders.of(resolved.deployment) if resolved.deployment is not None else 0
        raised |= difference(project.status, {"source": {**resolved.source, "order": at or None}})
    if raised:
        patches.append(Patch(kinds.PROJECT, project.name, {"status": raised}, project.resource_version))
    for deployment in deployments:
        status: dict[str, int] = {}
        if deployment.name in orders.assigned:
            status["order"] = orders.assigned[deployment.name]
        if deployment.name in orders.activations_seen:
            status["activationSeen"] = orders.activations_seen[deployment.name]
        if status:
            version = deployment.resource_version
            patches.append(Patch(kinds.DEPLOYMENT, deployment.name, {"status": status}, version))
    return tuple(patches)


def _is_acted_on(resolved: revision.Revision | None, orders: activation.Orders) -> bool:
    """Return whether this reconcile orders the head: it moved, or now has a Deployment."""
    if resolved is None or resolved.create is not None:
        return False
    return resolved.moved or (resolved.deployment is not None and resolved.deployment.name in orders.assigned)


def _activation_message(best: Deployment, before: str | None, orders: activation.Orders) -> str:
    """Return the Event message of an activation: new and previous Deployment, and whether a rollback."""
    instead = f", replacing {before}" if before else ""
    rolled = " (rollback)" if best.name in orders.activations_seen else ""
    return f"{best.name} is the active deployment{instead}{rolled}."


def _status(
    project: Project,
    deployments: Sequence[Deployment],
    observed: ObservedSource | None,
    resolved: revision.Revision | None,
    orders: activation.Orders,
    now: datetime,
    coalescing: bool,
    more: Sequence[Condition],
) -> tuple[dict[str, Any], list[ObjectEvent]]:
    status: dict[str, Any] = {}
    events: list[ObjectEvent] = []
    active = activation.active_deployment(deployments, orders)
    if active is not None and active.name != project.active:
        status |= {"activeDeployment": active.name, "activatedAt": format_time(now)}
        events.append(ObjectEvent("Activated", _activation_message(active, project.active, orders)))
    elif active is None and project.active is not None:
        status |= {"activeDeployment": None, "activatedAt": None}
        events.append(
            ObjectEvent("Deactivated", f"{project.active} was deleted; no deployment is active.", True)
        )
    if (
        resolved is not None
        and resolved.create is None
        and resolved.source is not None
        and not resolved.moved
    ):
        # Possibly a commit outside `path`: then the recorded order belongs to another Deployment.
        recorded = project.status.get("source") or {}
        same = recorded.get("commit") == resolved.source["commit"]
        status["source"] = dict(resolved.source) if same else {**resolved.source, "order": None}
    dependencies = policy.updated_dependencies(project, deployments, now)
    if dependencies is not None:
        status["dependencies"] = dependencies
    written, notes = conditions_of(project, observed, now, coalescing, more)
    return {**status, **written}, [*events, *notes]
