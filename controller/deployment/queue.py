"""Build queue: which builds may start, and the message of those that wait. Pure.

First in, first out by creation, within the limits of the installation and of each project; a
project at its limit does not block others behind it. Called by `controller.deployment.queue_view`
and `build_admission`.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping

from controller.config import ControllerConfig
from controller.deployment import status
from crds import conditions, names
from crds.objects import Deployment, Pod, creation_order

_NOT_QUEUED_REASONS = (status.PROJECT_NOT_FOUND, status.SAME_SOURCE, status.POD_REFUSED)


def has_started(deployment: Deployment) -> bool:
    """Return whether the Deployment has or had a build pod."""
    return bool(deployment.status.get("buildPod"))


def occupies_slot(deployment: Deployment) -> bool:
    """Return whether the Deployment occupies a build slot."""
    return has_started(deployment) and not _finished(deployment)


def is_waiting(deployment: Deployment) -> bool:
    """Return whether the build has not started yet."""
    return not has_started(deployment) and not _finished(deployment)


def _finished(deployment: Deployment) -> bool:
    return deployment.failed or deployment.built or deployment.deleting


def is_queued(deployment: Deployment) -> bool:
    """Return whether the Deployment waits only for a slot."""
    ready = conditions.find(deployment.conditions, conditions.READY) or {}
    return is_waiting(deployment) and ready.get("reason") not in _NOT_QUEUED_REASONS


def occupied_slots(
    deployments: Iterable[Deployment], pods: Iterable[Pod], by_name: Mapping[str, Deployment]
) -> dict[str, str]:
    """Return names and projects of the Deployments that occupy a slot.

    Besides those with a recorded pod, one whose pod was created but not recorded because the
    controller crashed; a pod that outlives its Deployment occupies none.
    """
    slots = {other.name: other.project for other in deployments if occupies_slot(other)}
    for pod in pods:
        deployment = by_name.get(pod.labels.get(names.LABEL_DEPLOYMENT, ""))
        if deployment is None or pod.finished or pod.deleting:
            continue
        if is_waiting(deployment) and deployment.uid in pod.owner_uids:
            slots[deployment.name] = deployment.project
    return slots


def startable(
    queued: Collection[Deployment], slots: Mapping[str, str], config: ControllerConfig
) -> frozenset[str]:
    """Return the names of queued Deployments that may start, given the occupied slots."""
    projects = Counter(slots.values())
    names = set()
    for other in sorted(queued, key=creation_order):
        if projects.total() >= config.max_builds:
            break
        if other.name not in slots and projects[other.project] < config.max_builds_per_project:
            projects[other.project] += 1
            names.add(other.name)
    return frozenset(names)


def wait_reason(project: str, config: ControllerConfig) -> str:
    """Return the message of a queued Deployment.

    It contains nothing that changes while the queue advances, or each step would rewrite all statuses.
    The API server computes the position on read (`api.store.index.deployments`).
    """
    total, per_project = config.max_builds, config.max_builds_per_project
    return (
        f"Waiting in the build queue; limits: {_builds(total)} in the installation, "
        f"{_builds(per_project)} of project {project}."
    )


def _builds(count: int) -> str:
    return f"{count} build" if count == 1 else f"{count} builds"
