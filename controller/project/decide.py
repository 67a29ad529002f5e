"""What is to be done about one Project: Deployments for heads, orders, activation, phases. Pure.

The Decision is performed in this order, so that an interruption anywhere leaves
something the next look completes: create; one patch that raises `lastOrder` and,
where the head moved, records it with the order that its Deployment is to have;
stamp orders; one status patch with the activation; phases. Were the head recorded
after the stamps, a rollback in between would be undone by the same move again.
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from controller.images import policy
from controller.project import activation, coalesce, revision
from controller.project.coalesce import AT_ONCE, Pace
from controller.project.phases import follow
from controller.project.status import conditions_of
from controller.runtime import event_map
from controller.runtime.decision import Create, Decision, Note, Patch, difference
from controller.source.observed import Look
from crds import kinds
from crds.objects import Deployment, Project
from crds.times import format_time


def decide(
    project: Project,
    deployments: Sequence[Deployment],
    look: Look | None,
    now: datetime,
    pace: Pace = AT_ONCE,
) -> Decision:
    """The Decision for a Project. A look at another source than the spec's counts as none."""
    current = look if look is not None and look.fits(project) else None
    found = current is not None and current.problem is None and project.git is not None
    head = revision.judge(project, deployments, current) if found and current else None
    orders = activation.assign(project, deployments, head)
    create = head.create if head is not None else None
    wait = pace.wait(deployments, create, now) if create and head and head.moved else 0.0
    status, events = _status(project, deployments, current, head, orders, now, wait > 0)
    after: list[Patch] = []
    active = status.get("activeDeployment", project.active)
    activated_at = status.get("activatedAt", project.status.get("activatedAt"))
    for deployment in deployments:
        if deployment.built and not deployment.deleting:
            after.extend(follow(deployment, active, activated_at, now))
    if wait > 0:
        create = None
    after.extend(_overtaken(deployments, head, orders, now))
    return Decision(
        create=(replace(create, events=_new(create, current)),) if create and current else (),
        before=_stamps(project, deployments, head, orders),
        status=status,
        after=tuple(after),
        events=tuple(events),
        # What was created gets its order, and a new active deployment its waiting runs, at the next look.
        enqueue=(event_map.project(project.name),) if create else (),
        requeue_after=wait or None,
    )


def _new(create: Create, look: Look) -> tuple[Note, ...]:
    """What the Deployment of a head tells, and who was passed over for it."""
    made = Note("NewCommit", f"{look.commit} is deployed as {create.name}.")
    if not look.skipped:
        return (made,)
    told = f"{coalesce.commits(look.skipped)}: not built, since {look.commit[:12]} followed."
    return made, Note("CommitsSkipped", told)


def _overtaken(
    deployments: Sequence[Deployment], head: revision.Head | None, orders: activation.Orders, now: datetime
) -> list[Patch]:
    if head is None or head.deployment is None or head.create is not None or head.deployment.failed:
        return []
    return coalesce.overtaken(deployments, head.deployment, orders, now)


def _stamps(
    project: Project, deployments: Sequence[Deployment], head: revision.Head | None, orders: activation.Orders
) -> tuple[Patch, ...]:
    """The greatest order and the head first, with a precondition; then each Deployment's order."""
    patches: list[Patch] = []
    raised: dict[str, Any] = {}
    if orders.last > project.last_order:
        raised["lastOrder"] = orders.last
    if head is not None and head.source is not None and _acted_upon(head, orders):
        at = orders.of(head.deployment) if head.deployment is not None else 0
        raised |= difference(project.status, {"source": {**head.source, "order": at or None}})
    if raised:
        patches.append(Patch(kinds.PROJECT, project.name, {"status": raised}, project.resource_version))
    for deployment in deployments:
        status: dict[str, int] = {}
        if deployment.name in orders.given:
            status["order"] = orders.given[deployment.name]
        if deployment.name in orders.seen:
            status["activationSeen"] = orders.seen[deployment.name]
        if status:
            version = deployment.resource_version
            patches.append(Patch(kinds.DEPLOYMENT, deployment.name, {"status": status}, version))
    return tuple(patches)


def _acted_upon(head: revision.Head | None, orders: activation.Orders) -> bool:
    """Whether this look gives the head its place: because it moved, or has a Deployment at last."""
    if head is None or head.create is not None:
        return False
    return head.moved or (head.deployment is not None and head.deployment.name in orders.given)


def _activated(best: Deployment, before: str | None, orders: activation.Orders) -> str:
    """Who is active now, in whose place, and whether somebody rolled back to it."""
    instead = f", in the place of {before}" if before else ""
    rolled = "; it was rolled back to" if best.name in orders.seen else ""
    return f"{best.name} is the active deployment{instead}{rolled}."


def _status(
    project: Project,
    deployments: Sequence[Deployment],
    look: Look | None,
    head: revision.Head | None,
    orders: activation.Orders,
    now: datetime,
    held: bool,
) -> tuple[dict[str, Any], list[Note]]:
    status: dict[str, Any] = {}
    events: list[Note] = []
    best = activation.winner(deployments, orders)
    if best is not None and best.name != project.active:
        status |= {"activeDeployment": best.name, "activatedAt": format_time(now)}
        events.append(Note("Activated", _activated(best, project.active, orders)))
    elif best is None and project.active is not None:
        status |= {"activeDeployment": None, "activatedAt": None}
        events.append(Note("Deactivated", f"{project.active} is gone; there is no active deployment.", True))
    if head is not None and head.create is None and head.source is not None and not head.moved:
        # Perhaps a commit outside `path`: then the order recorded was another one's.
        recorded = project.status.get("source") or {}
        same = recorded.get("commit") == head.source["commit"]
        status["source"] = dict(head.source) if same else {**head.source, "order": None}
    dependencies = policy.used(project, deployments, now)
    if dependencies is not None:
        status["dependencies"] = dependencies
    written, notes = conditions_of(project, look, now, held)
    return {**status, **written}, [*events, *notes]
