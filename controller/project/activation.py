"""Activation: which Deployment of a Project is active. Pure.

A Deployment gets an order, greater than every earlier one of the Project, when it is created, when
the head moves to it and on a rollback to it; the built one with the greatest order is active. So a
late build never displaces a newer one, and a rollback lasts until the head moves. Called by
`controller.project.decide`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from controller.project.revision import Revision, recorded_attempts
from crds.objects import Deployment, Project, creation_order
from crds.reasons import DeploymentPhase


@dataclass(frozen=True)
class Orders:
    """`assigned` are orders to write by name, `activations_seen` the handled activations.

    `last` is the greatest order; `unobserved` are the uids of Deployments that may get an order from
    a poll of the source.
    """

    assigned: Mapping[str, int]
    activations_seen: Mapping[str, int]
    last: int
    unobserved: frozenset[str] = frozenset()

    def of(self, deployment: Deployment) -> int:
        """Return the current order of a Deployment."""
        return self.assigned.get(deployment.name, deployment.order)


def assign_orders(project: Project, deployments: Sequence[Deployment], revision: Revision) -> Orders:
    """Assign new orders: to new Deployments first, then to a moved head, then to rollbacks."""
    unstamped = _unstamped(project, deployments)
    greatest = max((*unstamped.values(), *(d.order for d in deployments)), default=0)
    last = max(project.last_order, greatest)
    at_head = revision.deployment
    to_order: list[Deployment] = []
    unobserved: set[str] = set()
    for deployment in sorted(deployments, key=creation_order):
        if deployment.order or deployment.preview or deployment.failed or deployment.deleting:
            continue
        if deployment.name in unstamped:
            continue
        at_its_head = at_head is not None and at_head.name == deployment.name
        if "archive" in deployment.spec["source"] or at_its_head:
            to_order.append(deployment)
        elif project.git is not None:
            unobserved.add(deployment.uid)
        elif deployment.phase != DeploymentPhase.SUPERSEDED:
            # A superseded one was built beside the head, before git was removed.
            to_order.append(deployment)
    moved = revision.moved and at_head not in to_order
    # It may have the greatest order already: the head returned before another Deployment got one.
    if at_head is not None and moved and not at_head.failed and at_head.order < greatest:
        to_order.append(at_head)
    activations_seen: dict[str, int] = {}
    for deployment in sorted(deployments, key=creation_order):
        if deployment.activation <= deployment.activation_seen or deployment.failed or deployment.deleting:
            continue
        activations_seen[deployment.name] = deployment.activation
        is_greatest = deployment.order == greatest and deployment.order > 0 and not to_order
        if not deployment.preview and not (is_greatest and project.active == deployment.name):
            to_order = [other for other in to_order if other.name != deployment.name]
            to_order.append(deployment)
    assigned = {deployment.name: last + 1 + index for index, deployment in enumerate(to_order)}
    return Orders({**unstamped, **assigned}, activations_seen, last + len(assigned), frozenset(unobserved))


def _unstamped(project: Project, deployments: Sequence[Deployment]) -> dict[str, int]:
    """Return the order recorded for the last head, if a crash prevented writing it to the Deployment.

    It stays the recorded number: a later rollback keeps a greater order. If an earlier attempt at the
    head has it, the latest one gets an order of its own.
    """
    order = int((project.status.get("source") or {}).get("order") or 0)
    attempts = recorded_attempts(project, deployments)
    if not attempts or any(attempt.order >= order for attempt in attempts):
        return {}
    latest = attempts[-1]
    return {} if latest.failed or latest.deleting else {latest.name: order}


def active_deployment(deployments: Sequence[Deployment], orders: Orders) -> Deployment | None:
    """Return the Deployment that must be active, or None."""
    candidates = [d for d in deployments if d.built and not d.preview and not d.deleting and orders.of(d) > 0]
    return max(candidates, key=orders.of, default=None)
