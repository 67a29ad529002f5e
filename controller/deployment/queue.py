"""Build queue: which builds may start, and the message of those that wait. Pure.

The projects share the slots (`crds.queues.build_order`), within the limits of the installation and of
each project's plan; a project at its limit does not block others behind it. Called by
`controller.deployment.queue_view` and `build_admission`.
"""

from collections import Counter
from collections.abc import Iterable, Mapping

from controller.config import ControllerConfig
from controller.deployment import status
from crds import conditions, names
from crds.objects import Deployment, Pod
from crds.queues.build_order import QueuedBuild, fair_order

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
    """Return whether no build is left; a smoke run may be, which occupies a run slot instead."""
    return deployment.failed or bool(deployment.image) or deployment.deleting


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


def last_ends(deployments: Iterable[Deployment]) -> dict[str, str]:
    """Return when the last build of each project ended, by the conditions of its Deployments."""
    ends: dict[str, str] = {}
    for other in deployments:
        if has_started(other) and (other.failed or other.image):
            built = conditions.find(other.conditions, conditions.BUILT) or {}
            ends[other.project] = max(ends.get(other.project, ""), str(built.get("lastTransitionTime", "")))
    return ends


def startable(
    queued: Iterable[Deployment],
    slots: Mapping[str, str],
    last_ended: Mapping[str, str],
    ceilings: Mapping[str, int],
    config: ControllerConfig,
) -> frozenset[str]:
    """Return the names of queued Deployments that may start, given the occupied slots.

    `ceilings` has the most builds of each project at a time.
    """
    running = Counter(slots.values())
    waiting = (
        QueuedBuild(each.created, each.name, each.project) for each in queued if each.name not in slots
    )
    names = set()
    for build in fair_order(waiting, running, last_ended):
        if running.total() >= config.max_builds:
            break
        if running[build.project] < ceilings.get(build.project, config.max_builds_per_project):
            running[build.project] += 1
            names.add(build.name)
    return frozenset(names)


def wait_reason(project: str, ceiling: int, config: ControllerConfig) -> str:
    """Return the message of a queued Deployment.

    It contains nothing that changes while the queue advances, or each step would rewrite all statuses.
    The API server computes the position on read (`api.store.index.deployments.build_queue`).
    """
    return (
        f"Waiting in the build queue; limits: {_builds(config.max_builds)} in the installation, "
        f"{_builds(ceiling)} of project {project}."
    )


def _builds(count: int) -> str:
    return f"{count} build" if count == 1 else f"{count} builds"
