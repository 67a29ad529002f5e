"""Which Deployments are too many, and which images nobody needs any more. Pure.

The registry is cleaned first and the objects are deleted afterwards: an object is
what is known of its image. Called by `controller.images.decide`.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from controller.project.activation import place
from crds import conditions
from crds.names import ANNOTATION_CLOSED
from crds.objects import Deployment, Project
from crds.times import parse_time

KEPT = 20
PREVIEWS_KEPT = 20
UNUSED = timedelta(days=14)
MOST_KEYS = 64
ROOM = 4
"""So many places of the list of dependency images stay free for the next ones."""


def beyond(project: Project, deployments: Sequence[Deployment], needed: Collection[str]) -> list[Deployment]:
    """The Deployments to remove, those of the oldest order first.

    `needed` are named by live Runs. Never the active one, the head's, one that is
    asked for by a rollback, nor one that is not at its end. Previews of closed pull requests go at once.
    """
    there = [deployment for deployment in deployments if not deployment.deleting]
    ranks = _ranks(there)
    head = (project.status.get("source") or {}).get("commit")
    found: list[Deployment] = []
    asked = (project.spec.get("retention") or {}).get("deployments")
    for previews, kept in ((False, int(asked or KEPT)), (True, PREVIEWS_KEPT)):
        group = [deployment for deployment in there if deployment.preview is previews]
        able = [
            deployment
            for deployment in group
            if (deployment.failed or deployment.phase == "Superseded")
            and deployment.name != project.active
            and deployment.name not in needed
            and deployment.activation <= deployment.activation_seen
            and (previews or not head or _commit(deployment) != head)
        ]
        able.sort(key=lambda deployment: ranks[deployment.name])
        closed = [deployment for deployment in able if _closed(deployment)]
        rest = [deployment for deployment in able if not _closed(deployment)]
        found.extend((*closed, *rest[: max(0, len(group) - len(closed) - kept)]))
    return found


def used(project: Project, deployments: Iterable[Deployment], now: datetime) -> list[dict[str, str]] | None:
    """The list of dependency images with the day of their last use; None where it needs no change.

    A use that is long ago adds nothing: its image may have been removed since.
    """
    recorded = _recorded(project)
    days = dict(recorded)
    for deployment in deployments:
        key = deployment.status.get("dependenciesKey")
        built = conditions.find(deployment.conditions, conditions.BUILT) or {}
        if not key or not deployment.built:
            continue
        moment = parse_time(str(built["lastTransitionTime"]))
        day = moment.strftime("%Y-%m-%dT00:00:00Z")
        if (key in recorded or not _long_ago(day, now)) and day > days.get(key, ""):
            days[key] = day
    return None if days == recorded else listed(days)


def listed(days: Mapping[str, str]) -> list[dict[str, str]]:
    """The list as the status has it, the newest use first."""
    newest = sorted(days.items(), key=lambda entry: (entry[1], entry[0]), reverse=True)
    return [{"key": key, "usedAt": day} for key, day in newest[:MOST_KEYS]]


def without(project: Project, keys: Collection[str]) -> list[dict[str, str]]:
    """The list without the images that were removed."""
    return listed({key: day for key, day in _recorded(project).items() if key not in keys})


def unused(project: Project, deployments: Iterable[Deployment], now: datetime) -> list[str]:
    """The dependency images to remove; none while something is being built, which may need them.

    What `used` would note again at once must not be in it, or it would be removed again and again.
    """
    there = list(deployments)
    if any(not (d.built or d.failed) for d in there):
        return []
    named = {d.status.get("dependenciesKey") for d in there}
    newest = listed(_recorded(project))
    return [
        entry["key"]
        for index, entry in enumerate(newest)
        if _long_ago(entry["usedAt"], now) or (index >= MOST_KEYS - ROOM and entry["key"] not in named)
    ]


def _closed(deployment: Deployment) -> bool:
    return deployment.preview and ANNOTATION_CLOSED in deployment.annotations


def _long_ago(day: str, now: datetime) -> bool:
    return now - parse_time(day) > UNUSED


def _recorded(project: Project) -> dict[str, str]:
    found: Iterable[Mapping[str, Any]] = project.status.get("dependencies") or ()
    return {str(entry["key"]): str(entry["usedAt"]) for entry in found}


def _commit(deployment: Deployment) -> str | None:
    git = deployment.spec["source"].get("git") or {}
    return git.get("commit")


def _ranks(deployments: Sequence[Deployment]) -> dict[str, tuple[int, tuple[str, str]]]:
    """By order; one without an order has its place by its creation."""
    ranks, latest = {}, 0
    for deployment in sorted(deployments, key=place):
        first = not deployment.order
        ranks[deployment.name] = (latest if first else deployment.order, place(deployment))
        latest = max(latest, deployment.order)
    return ranks
