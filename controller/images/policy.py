"""Retention policy: which Deployments and images have expired. Pure.

Images are deleted before their objects: the object is the only record of its image. Called by
`controller.images.decide` and `controller.project.decide`.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from crds import conditions
from crds.installation_limits import InstallationLimits
from crds.limits import retained_deployments
from crds.names import ANNOTATION_CLOSED
from crds.objects import Deployment, Project, creation_order
from crds.times import parse_time

MAX_PREVIEWS = 20
MAX_UNUSED_AGE = timedelta(days=14)
MAX_DEPENDENCY_KEYS = 64
FREE_DEPENDENCY_KEYS = 4
"""Entries of the list of dependency images that stay free for new ones."""


def expired_deployments(
    project: Project,
    deployments: Sequence[Deployment],
    needed: Collection[str],
    limits: InstallationLimits,
) -> list[Deployment]:
    """Return the Deployments to delete, lowest order first.

    `needed` are named by live Runs. Never the active one, the head's, one with a pending rollback, or
    an unfinished one. Previews of closed pull requests and erased Deployments expire immediately.
    """
    present = [deployment for deployment in deployments if not deployment.deleting]
    ranks = _ranks(present)
    head = (project.status.get("source") or {}).get("commit")
    expired: list[Deployment] = []
    for previews, max_count in ((False, retained_deployments(project, limits)), (True, MAX_PREVIEWS)):
        group = [deployment for deployment in present if deployment.preview is previews]
        deletable = [
            deployment
            for deployment in group
            if deployment.unused
            and deployment.name != project.active
            and deployment.name not in needed
            and (previews or not head or _commit(deployment) != head)
        ]
        deletable.sort(key=lambda deployment: ranks[deployment.name])
        discarded = [deployment for deployment in deletable if _discarded(deployment)]
        others = [deployment for deployment in deletable if not _discarded(deployment)]
        expired.extend((*discarded, *others[: max(0, len(group) - len(discarded) - max_count)]))
    return expired


def updated_dependencies(
    project: Project, deployments: Iterable[Deployment], now: datetime
) -> list[dict[str, str]] | None:
    """Return the list of dependency images with the day of their last use; None if unchanged.

    An old use adds no entry: its image may have been deleted since.
    """
    recorded = _recorded(project)
    days = dict(recorded)
    for deployment in deployments:
        built = conditions.find(deployment.conditions, conditions.BUILT) or {}
        keys = dependency_keys(deployment)
        if not keys or not deployment.image:
            continue
        day = parse_time(str(built["lastTransitionTime"])).strftime("%Y-%m-%dT00:00:00Z")
        for key in keys:
            if (key in recorded or not _is_unused(day, now)) and day > days.get(key, ""):
                days[key] = day
    return None if days == recorded else dependency_list(days)


def dependency_list(days: Mapping[str, str]) -> list[dict[str, str]]:
    """Return the list in the form of the status, newest use first."""
    newest = sorted(days.items(), key=lambda entry: (entry[1], entry[0]), reverse=True)
    return [{"key": key, "usedAt": day} for key, day in newest[:MAX_DEPENDENCY_KEYS]]


def remaining_dependencies(project: Project, keys: Collection[str]) -> list[dict[str, str]]:
    """Return the list without the deleted images."""
    return dependency_list({key: day for key, day in _recorded(project).items() if key not in keys})


def unused_dependencies(project: Project, deployments: Iterable[Deployment], now: datetime) -> list[str]:
    """Return the dependency images to delete; none during a build, which may need them.

    It must not contain keys that `updated_dependencies` adds again, or they would be deleted repeatedly.
    """
    present = list(deployments)
    if any(not (d.built or d.failed) for d in present):
        return []
    referenced = {key for d in present for key in dependency_keys(d)}
    newest = dependency_list(_recorded(project))
    return [
        entry["key"]
        for index, entry in enumerate(newest)
        if _is_unused(entry["usedAt"], now)
        or (index >= MAX_DEPENDENCY_KEYS - FREE_DEPENDENCY_KEYS and entry["key"] not in referenced)
    ]


def dependency_keys(deployment: Deployment) -> list[str]:
    """Return the keys of its dependency image, and of the one in which its dependencies were installed."""
    keys = (deployment.status.get(name) for name in ("dependenciesKey", "baseKey"))
    return [str(key) for key in keys if key]


def _discarded(deployment: Deployment) -> bool:
    return deployment.erased or (deployment.preview and ANNOTATION_CLOSED in deployment.annotations)


def _is_unused(day: str, now: datetime) -> bool:
    return now - parse_time(day) > MAX_UNUSED_AGE


def _recorded(project: Project) -> dict[str, str]:
    entries: Iterable[Mapping[str, Any]] = project.status.get("dependencies") or ()
    return {str(entry["key"]): str(entry["usedAt"]) for entry in entries}


def _commit(deployment: Deployment) -> str | None:
    git = deployment.spec["source"].get("git") or {}
    return git.get("commit")


def _ranks(deployments: Sequence[Deployment]) -> dict[str, tuple[int, tuple[str, str]]]:
    """Return the ranks by order; a Deployment without an order is ranked by its creation."""
    ranks, latest = {}, 0
    for deployment in sorted(deployments, key=creation_order):
        first = not deployment.order
        ranks[deployment.name] = (latest if first else deployment.order, creation_order(deployment))
        latest = max(latest, deployment.order)
    return ranks
