"""The queue of builds: who may begin, and who waits at which position. Pure.

First in, first out by creation, within the caps of the installation and of each
project; a project at its cap does not hold up others behind it. Called by
`controller.deployment.reconcile`.
"""

from collections.abc import Collection, Iterable, Mapping

from controller.config import Config
from controller.deployment import status
from crds import conditions, names
from crds.objects import Deployment, Pod

_NOT_QUEUED = (status.PROJECT_NOT_FOUND, status.SAME_SOURCE, status.POD_REFUSED)


def place(deployment: Deployment) -> tuple[str, str]:
    """The order of creation; times are whole seconds, names of uploads monotonic."""
    return str(deployment.metadata["creationTimestamp"]), deployment.name


def begun(deployment: Deployment) -> bool:
    """Whether it has, or had, a build pod."""
    return bool(deployment.status.get("buildPod"))


def building(deployment: Deployment) -> bool:
    """Whether it takes one of the places for builds."""
    return begun(deployment) and not _over(deployment)


def waiting(deployment: Deployment) -> bool:
    """Whether it has its build before it."""
    return not begun(deployment) and not _over(deployment)


def _over(deployment: Deployment) -> bool:
    return deployment.failed or deployment.built or deployment.deleting


def stands_in_line(deployment: Deployment) -> bool:
    """Whether it waits for a place and nothing else."""
    ready = conditions.find(deployment.conditions, conditions.READY) or {}
    return waiting(deployment) and ready.get("reason") not in _NOT_QUEUED


def busy(
    deployments: Iterable[Deployment], pods: Iterable[Pod], known: Mapping[str, Deployment]
) -> dict[str, str]:
    """The names and projects of those that take a place.

    Besides those whose status says so, one whose pod was made and not recorded,
    since the controller died in between; a pod that outlives its Deployment takes none.
    """
    found = {other.name: other.project for other in deployments if building(other)}
    for pod in pods:
        of = known.get(pod.labels.get(names.LABEL_DEPLOYMENT, ""))
        if of is None or pod.finished or pod.deleting:
            continue
        if waiting(of) and of.uid in pod.owner_uids:
            found[of.name] = of.project
    return found


def judge(
    deployment: Deployment,
    line: Collection[Deployment],
    taken: Mapping[str, str],
    config: Config,
) -> str:
    """Why a Deployment must wait, for people, given all that stand in line and the places taken.

    Empty where it may begin.
    """
    projects = list(taken.values())
    ahead = 0
    queue = sorted({other.name: other for other in (*line, deployment)}.values(), key=place)
    queue = [other for other in queue if other.name not in taken]
    for other in queue:
        free = len(projects) < config.max_builds
        own = projects.count(other.project) < config.max_builds_per_project
        if free and own:
            if other.name == deployment.name:
                return ""
            projects.append(other.project)
            continue
        ahead += 1
        if other.name == deployment.name:
            reason = _project_full(deployment, config) if not own else _installation_full(config)
            total = ahead + _waiting_behind(queue, deployment, projects, config)
            return f"Position {ahead} of {total} in the queue of builds: {reason}."
    return ""


def _waiting_behind(
    queue: Collection[Deployment], deployment: Deployment, projects: Collection[str], config: Config
) -> int:
    """How many behind a waiting Deployment wait too."""
    taken, count = list(projects), 0
    for other in queue:
        if place(other) <= place(deployment):
            continue
        free = len(taken) < config.max_builds
        if free and taken.count(other.project) < config.max_builds_per_project:
            taken.append(other.project)
        else:
            count += 1
    return count


def _project_full(deployment: Deployment, config: Config) -> str:
    most = config.max_builds_per_project
    return f"project {deployment.project} has {most} {'build' if most == 1 else 'builds'} at once"


def _installation_full(config: Config) -> str:
    most = config.max_builds
    return f"the installation has {most} {'build' if most == 1 else 'builds'} at once"
