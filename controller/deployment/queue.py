"""The queue of builds: who may begin, and what those who wait are told. Pure.

First in, first out by creation, within the caps of the installation and of each
project; a project at its cap does not hold up others behind it. Called by
`controller.deployment.queue_view` and `begin`.
"""

from collections import Counter
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


def first(line: Collection[Deployment], taken: Mapping[str, str], config: Config) -> frozenset[str]:
    """The names of those in line that may begin, given the places taken."""
    projects = Counter(taken.values())
    found = set()
    for other in sorted(line, key=place):
        if projects.total() >= config.max_builds:
            break
        if other.name not in taken and projects[other.project] < config.max_builds_per_project:
            projects[other.project] += 1
            found.add(other.name)
    return frozenset(found)


def why(project: str, config: Config) -> str:
    """What one waits for, for people.

    It says nothing that changes while the line moves on: else each step would be written to all who wait.
    The position is computed when it is read.
    """
    most, own = config.max_builds, config.max_builds_per_project
    return (
        f"Waiting in the queue of builds: {_builds(most)} at once in the installation, "
        f"{_builds(own)} of project {project}."
    )


def _builds(count: int) -> str:
    return f"{count} build" if count == 1 else f"{count} builds"
