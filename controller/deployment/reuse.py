"""Another Deployment of the same project that is, or will be, built from the same. Pure.

Called by `controller.deployment.reconcile` before a build is begun.
"""

from collections.abc import Iterable

from controller.deployment.queue import place
from crds.objects import Deployment


def built_twin(
    deployment: Deployment, key: str, others: Iterable[Deployment], condemned: frozenset[str]
) -> Deployment | None:
    """The newest built one whose image can be taken over; not one whose image is being removed."""
    found = [
        other
        for other in _twins(deployment, key, others)
        if other.built and not other.deleting and other.name not in condemned
    ]
    return max(found, key=place, default=None)


def building_twin(deployment: Deployment, key: str, others: Iterable[Deployment]) -> Deployment | None:
    """The oldest earlier one that is not built yet, which is worth waiting for."""
    found = [
        other
        for other in _twins(deployment, key, others)
        if not other.built and not other.failed and not other.deleting and place(other) < place(deployment)
    ]
    return min(found, key=place, default=None)


def _twins(deployment: Deployment, key: str, others: Iterable[Deployment]) -> Iterable[Deployment]:
    return (
        other
        for other in others
        if other.name != deployment.name
        and other.project == deployment.project
        and other.status.get("sourceKey") == key
    )
