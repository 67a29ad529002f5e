"""Which Deployment of a Project is active. Pure.

Each Deployment gets an integer when it is created, when the head moves to it and
when it is rolled back to, always greater than every earlier one of the Project;
the built one of greatest order is active. So a late build never displaces a newer
one, and a rollback stays until the head moves.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from controller.project.revision import Head, recorded_deployment
from crds.objects import Deployment, Project


@dataclass(frozen=True)
class Orders:
    """`given` are orders to stamp by name, `seen` the activations answered by them, `last` the greatest.

    `unlooked` are the uids of Deployments that a look at the source may give an order.
    """

    given: Mapping[str, int]
    seen: Mapping[str, int]
    last: int
    unlooked: frozenset[str] = frozenset()

    def of(self, deployment: Deployment) -> int:
        """The order a Deployment has now."""
        return self.given.get(deployment.name, deployment.order)


def place(deployment: Deployment) -> tuple[str, str]:
    """The order of creation; the times are whole seconds, the names of uploads monotonic."""
    return str(deployment.metadata["creationTimestamp"]), deployment.name


def assign(project: Project, deployments: Sequence[Deployment], head: Head | None) -> Orders:
    """New orders for those that ask for one: new ones first, then a head that moved, then rollbacks."""
    owed = _owed(project, deployments)
    greatest = max((*owed.values(), *(d.order for d in deployments)), default=0)
    last = max(project.last_order, greatest)
    at_head = head.deployment if head is not None else None
    wanting: list[Deployment] = []
    unlooked: set[str] = set()
    for deployment in sorted(deployments, key=place):
        if deployment.order or deployment.preview or deployment.failed or deployment.deleting:
            continue
        if deployment.name in owed:
            continue
        uploaded = project.git is None or "archive" in deployment.spec["source"]
        if uploaded or (at_head is not None and at_head.name == deployment.name):
            wanting.append(deployment)
        else:
            unlooked.add(deployment.uid)
    moved = head is not None and head.moved and at_head not in wanting
    # It may hold the greatest order already: the head came back before anything else got one.
    if at_head is not None and moved and not at_head.failed and at_head.order < greatest:
        wanting.append(at_head)
    seen: dict[str, int] = {}
    for deployment in sorted(deployments, key=place):
        if deployment.activation <= deployment.activation_seen or deployment.failed or deployment.deleting:
            continue
        seen[deployment.name] = deployment.activation
        is_greatest = deployment.order == greatest and deployment.order > 0 and not wanting
        if not deployment.preview and not (is_greatest and project.active == deployment.name):
            wanting = [other for other in wanting if other.name != deployment.name]
            wanting.append(deployment)
    given = {deployment.name: last + 1 + index for index, deployment in enumerate(wanting)}
    return Orders({**owed, **given}, seen, last + len(given), frozenset(unlooked))


def _owed(project: Project, deployments: Sequence[Deployment]) -> dict[str, int]:
    """The order that was recorded for the last head, where we were interrupted before it was stamped.

    It is that very number and no new one: what was rolled back to since then stays above it.
    """
    order = int((project.status.get("source") or {}).get("order") or 0)
    found = recorded_deployment(project, deployments) if order else None
    if found is None or found.failed or found.deleting or found.order >= order:
        return {}
    return {found.name: order}


def winner(deployments: Sequence[Deployment], orders: Orders) -> Deployment | None:
    """The Deployment that is to be active, or None."""
    fit = [d for d in deployments if d.built and not d.preview and not d.deleting and orders.of(d) > 0]
    return max(fit, key=orders.of, default=None)
