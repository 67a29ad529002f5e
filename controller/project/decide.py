"""Decision about one Project: Deployments for heads, orders, activation, phases. Pure.

The writes have this order, so the next reconcile completes any interrupted one: create; one patch
that raises `lastOrder` and records a head that has a Deployment, with the order of that; patch
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
    refusal: str = "",
) -> Decision:
    """Return the Decision for a Project. An observation of another source than the spec's is ignored.

    `lowered` says what it gets less than its spec asks for, `refused_egress` which entries of `run.egress`
    its pods do not get. `refusal` says why the kube-apiserver refuses the Deployment of the head: it is not
    created then.
    """
    current = observed if observed is not None and observed.matches(project) else None
    resolved = revision.NO_HEAD
    if current is not None and current.problem is None:
        resolved = revision.resolve_revision(project, deployments, current)
    orders = activation.assign_orders(project, deployments, resolved)
    create = resolved.create
    wait = coalescing.wait(deployments, create, now) if create is not None and resolved.moved else 0.0
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
    active = activation.active_deployment(deployments, orders)
    activated, activation_events = _activation(project, active, orders, now)
    conditions, condition_events = conditions_of(project, current, now, wait > 0, more, refusal)
    status = {
        **activated,
        **_head_status(project, deployments, resolved),
        **_dependencies_status(project, deployments, now),
        **conditions,
    }
    active_name = active.name if active is not None else None
    activated_at = status.get("activatedAt", project.status.get("activatedAt"))
    after: list[Patch] = []
    for deployment in deployments:
        if deployment.built and not deployment.deleting:
            after.extend(phase_patch(deployment, active_name, activated_at, now))
        if (deployment.built or deployment.failed) and not deployment.deleting:
            # An earlier Project of this name left it; nothing else reconciles one that has ended.
            after.extend(owner.adoption(kinds.DEPLOYMENT, deployment, project))
    head = resolved.deployment
    if head is not None and current is not None and not head.failed:
        after.extend(coalesce.supersede_patches(deployments, head, current.commit, orders, now))
    created: tuple[Create, ...] = ()
    if create is not None and current is not None and not wait and not refusal:
        created = (replace(create, events=_creation_events(create, current)),)
    return Decision(
        create=created,
        before=_order_patches(project, deployments, resolved, orders),
        status=status,
        after=tuple(after),
        events=(*activation_events, *condition_events),
        # The next reconcile assigns the order of a created Deployment.
        enqueue=(event_map.project(project.name),) if created else (),
        requeue_after=wait or None,
    )


def _creation_events(create: Create, observed: ObservedSource) -> tuple[ObjectEvent, ...]:
    """Return the Events of a new Deployment and of the commits skipped for it."""
    created = ObjectEvent("NewCommit", f"{observed.commit} is built as {create.name}.")
    if not observed.skipped:
        return (created,)
    message = f"{coalesce.short_commits(observed.skipped)}: not built, superseded by {observed.commit[:12]}."
    return created, ObjectEvent("CommitsSkipped", message)


def _order_patches(
    project: Project,
    deployments: Sequence[Deployment],
    resolved: revision.Revision,
    orders: activation.Orders,
) -> tuple[Patch, ...]:
    """Patch greatest order and head first, with a precondition; then the order of each Deployment."""
    patches: list[Patch] = []
    raised: dict[str, Any] = {}
    if orders.last > project.last_order:
        raised["lastOrder"] = orders.last
    if (head := resolved.deployment) is not None:
        source = {**resolved.source, "order": orders.of(head) or None}
        raised |= difference(project.status, {"source": source})
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


def _activation(
    project: Project, active: Deployment | None, orders: activation.Orders, now: datetime
) -> tuple[dict[str, Any], tuple[ObjectEvent, ...]]:
    """Return the status fields and the Event of a change of the active Deployment; empty without one."""
    before = project.active
    if active is None and before is None:
        return {}, ()
    if active is None:
        message = f"{before} was deleted; no deployment is active."
        event = ObjectEvent("Deactivated", message, warning=True)
        return {"activeDeployment": None, "activatedAt": None}, (event,)
    if active.name == before:
        return {}, ()
    instead = f", replacing {before}" if before else ""
    rolled = " (rollback)" if active.name in orders.activations_seen else ""
    event = ObjectEvent("Activated", f"{active.name} is the active deployment{instead}{rolled}.")
    return {"activeDeployment": active.name, "activatedAt": format_time(now)}, (event,)


def _head_status(
    project: Project, deployments: Sequence[Deployment], resolved: revision.Revision
) -> dict[str, Any]:
    """Return the status field of a head that has and needs no Deployment; the order patches record others.

    It is a commit outside `path`, or its Deployment was deleted: the recorded order is that of another one.
    """
    if resolved.create is not None or resolved.deployment is not None:
        return {}
    recorded = project.status.get("source") or {}
    if not resolved.source and ("order" not in recorded or revision.recorded_attempts(project, deployments)):
        return {}
    return {"source": {**resolved.source, "order": None}}


def _dependencies_status(
    project: Project, deployments: Sequence[Deployment], now: datetime
) -> dict[str, Any]:
    dependencies = policy.updated_dependencies(project, deployments, now)
    return {} if dependencies is None else {"dependencies": dependencies}
