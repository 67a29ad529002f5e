"""Cached view of the build queue, computed once per change instead of once per reconcile.

Hundreds of Deployments may wait, each reconciled every few seconds. Called by
`controller.deployment.build_admission`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from controller.config import ControllerConfig
from controller.deployment import queue, status
from controller.runtime.cache import ObjectCache
from crds import conditions, kinds
from crds.objects import Deployment, Project

ProjectSourceKey = tuple[str, str]
"""Project and source key."""


@dataclass(frozen=True)
class BuildQueueSnapshot:
    """Build queue at one moment; `startable` are the names that may start, `built_keys` the built sources.

    `same_source` are the names that wait for an identical build. Of each project: `last_ended` is when its
    last build ended, `ceilings` its most builds at a time.
    """

    deployments: tuple[Deployment, ...] = ()
    queued: tuple[Deployment, ...] = ()
    startable: frozenset[str] = frozenset()
    same_source: tuple[str, ...] = ()
    built_keys: frozenset[ProjectSourceKey] = frozenset()
    last_ended: Mapping[str, str] = field(default_factory=dict)
    ceilings: Mapping[str, int] = field(default_factory=dict)


@dataclass
class BuildQueueView:
    """Current build queue, from the cache."""

    cache: ObjectCache
    config: ControllerConfig
    _generations: tuple[int, int] = (-1, -1)
    _snapshot: BuildQueueSnapshot = field(default_factory=BuildQueueSnapshot)

    def snapshot(self) -> BuildQueueSnapshot:
        """Return the current queue.

        A build whose pod was created but not recorded occupies no slot here; the live check before a
        start finds it.
        """
        now = (self.cache.changes(kinds.DEPLOYMENT), self.cache.changes(kinds.PROJECT))
        if now != self._generations:
            self._generations, self._snapshot = now, self._compute()
        return self._snapshot

    def _compute(self) -> BuildQueueSnapshot:
        deployments = tuple(Deployment(raw) for raw in self.cache.all(kinds.DEPLOYMENT))
        ceilings = {
            project.name: self.config.build_ceiling(project)
            for project in map(Project, self.cache.all(kinds.PROJECT))
        }
        # A Deployment without a Project blocks no other.
        queued = tuple(other for other in deployments if queue.is_queued(other) and other.project in ceilings)
        slots = queue.occupied_slots(deployments, (), {})
        last_ended = queue.last_ends(deployments)
        may_start = queue.startable(queued, slots, last_ended, ceilings, self.config)
        keys = ((other, other.status.get("sourceKey")) for other in deployments)
        built = frozenset((other.project, str(key)) for other, key in keys if key and other.built)
        same = tuple(other.name for other in deployments if _waits_for_identical_build(other))
        return BuildQueueSnapshot(deployments, queued, may_start, same, built, last_ended, ceilings)


def _waits_for_identical_build(deployment: Deployment) -> bool:
    ready = conditions.find(deployment.conditions, conditions.READY) or {}
    return ready.get("reason") == status.SAME_SOURCE and queue.is_waiting(deployment)
