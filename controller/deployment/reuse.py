"""Reuse: Deployments of the same project with the same source key, built or being built. Pure.

Called by `controller.deployment.build_admission` before a build starts.
"""

from collections.abc import Callable, Iterable

from crds.objects import Deployment, creation_order


def find_built(
    deployment: Deployment,
    key: str,
    others: Iterable[Deployment],
    marked_for_deletion: frozenset[str],
    is_reusable: Callable[[Deployment], bool],
) -> Deployment | None:
    """Return the newest built one whose image is reusable: a build made it, and it is not being deleted."""
    candidates = [
        other
        for other in _same_source(deployment, key, others)
        if other.built and not other.deleting and other.name not in marked_for_deletion and is_reusable(other)
    ]
    return max(candidates, key=creation_order, default=None)


def find_building(deployment: Deployment, key: str, others: Iterable[Deployment]) -> Deployment | None:
    """Return the oldest earlier one that is not built yet, to wait for."""
    candidates = [
        other
        for other in _same_source(deployment, key, others)
        if not other.built
        and not other.failed
        and not other.deleting
        and creation_order(other) < creation_order(deployment)
    ]
    return min(candidates, key=creation_order, default=None)


def _same_source(deployment: Deployment, key: str, others: Iterable[Deployment]) -> Iterable[Deployment]:
    return (
        other
        for other in others
        if other.name != deployment.name
        and other.project == deployment.project
        and other.status.get("sourceKey") == key
    )
