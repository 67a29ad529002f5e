"""Build admission: reuse an image, wait for an identical build, wait in the queue, or start a build.

Waiting is decided on the cache, without a call; a slot is taken only under a lock and on a fresh
list from the apiserver, so builds never exceed the limits. Called by
`controller.deployment.reconcile`.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from controller.build_proof.proof import proven_pod
from controller.build_proof.proven_digests import ProvenDigests, proven_images
from controller.config import ControllerConfig
from controller.deployment import queue, reuse, status
from controller.deployment.queue_view import BuildQueueSnapshot, BuildQueueView
from controller.deployment.source_key import recorded_tree, source_key
from controller.owner import belongs_to
from controller.runtime import event_map
from controller.runtime.apply import Applier
from crds import conditions, kinds, names
from crds.objects import Deployment, Pod, Project

BUILDING_FIELDS = "status.phase=Building"
LIVE_POD_FIELDS = "status.phase!=Succeeded,status.phase!=Failed"
BUILD_POD_LABELS = f"{names.LABEL_COMPONENT}={names.COMPONENT_BUILD}"


@dataclass(frozen=True)
class BuildAdmission:
    """Admits builds; `tree_of` returns the git tree of a Deployment from the last poll of its source.

    `image_lock` is held while an image is reused and while images are deleted; `marked_for_deletion`
    returns the Deployments whose images are being deleted, None if not known yet, and `deleted_images`
    those images. `ready` returns whether the first resync is complete.
    """

    applier: Applier
    config: ControllerConfig
    queue_view: BuildQueueView
    tree_of: Callable[[Deployment], str | None]
    ready: Callable[[], bool]
    marked_for_deletion: Callable[[str], frozenset[str] | None]
    deleted_images: Callable[[str], frozenset[str] | None]
    image_lock: asyncio.Lock
    slot_lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    def source_key(self, deployment: Deployment, project: Project) -> str | None:
        """Return the current source key of a Deployment."""
        tree = self.tree_of(deployment) or recorded_tree(deployment, project)
        return source_key(deployment, project, tree, self.config)

    def still_queued(self, name: str) -> bool:
        """Return whether a Deployment waits in the queue with a current message; nothing to do then."""
        raw = self.applier.cache.get(kinds.DEPLOYMENT, name)
        deployment = Deployment(raw) if raw else None
        if deployment is None or not queue.is_queued(deployment) or not self.ready():
            return False
        project = self.applier.cache.get(kinds.PROJECT, deployment.project)
        if project is None or self.applier.is_hidden(kinds.PROJECT, deployment.project):
            return False
        ready = conditions.find(deployment.conditions, conditions.READY) or {}
        if ready.get("reason") != status.QUEUED or deployment.generation != ready.get("observedGeneration"):
            return False
        key, view = deployment.status.get("sourceKey"), self.queue_view.snapshot()
        if (
            key
            and (deployment.project, key) in view.built_keys
            and self._find_built(deployment, Project(project), key, view.deployments)
        ):
            return False
        return deployment.name not in view.startable and ready.get("message") == self._wait_reason(deployment)

    def cached_wait_reason(self, deployment: Deployment) -> str:
        """Return the reason to wait, by the cache; empty if the build may start."""
        view = self.queue_view.snapshot()
        # A Deployment that was never reconciled joins the queue now.
        may = view.startable if deployment.name in view.startable else self._startable(deployment, view, None)
        return "" if deployment.name in may else self._wait_reason(deployment)

    async def live_wait_reason(self, deployment: Deployment) -> str:
        """Return the reason to wait, by the apiserver; call it under `slot_lock`."""
        listing = await self.applier.kube.list(kinds.DEPLOYMENT, fields=BUILDING_FIELDS)
        pods = await self.applier.kube.list(kinds.POD, BUILD_POD_LABELS, LIVE_POD_FIELDS)
        view = self.queue_view.snapshot()
        by_name = {other.name: other for other in view.deployments}
        slots = queue.occupied_slots(map(Deployment, listing.items), map(Pod, pods.items), by_name)
        slots.pop(deployment.name, None)
        return (
            ""
            if deployment.name in self._startable(deployment, view, slots)
            else self._wait_reason(deployment)
        )

    async def reusable_build(self, deployment: Deployment, project: Project, key: str) -> Deployment | None:
        """Return a built Deployment with that key, read from the apiserver; call it under `image_lock`."""
        built = self._find_built(deployment, project, key, self.queue_view.snapshot().deployments)
        raw = await self.applier.kube.get(kinds.DEPLOYMENT, built.name) if built else None
        return self._find_built(deployment, project, key, [Deployment(raw)]) if raw else None

    def identical_build_in_progress(self, deployment: Deployment, key: str) -> Deployment | None:
        """Return an earlier unfinished Deployment with that key, or None."""
        return reuse.find_building(deployment, key, self.queue_view.snapshot().deployments)

    def proven_images(self, project: str) -> ProvenDigests:
        """Return the images that a build of the project may take from the registry."""
        return proven_images(project, self.queue_view.snapshot().deployments, self.config)

    def enqueue_startable(self) -> None:
        """Enqueue the builds that may start after a slot was freed or the queue changed."""
        view = self.queue_view.snapshot()
        for name in (*view.startable, *view.same_source):
            self.applier.queues.add(event_map.deployment(name))

    def _startable(
        self, deployment: Deployment, view: BuildQueueSnapshot, slots: Mapping[str, str] | None
    ) -> frozenset[str]:
        if slots is None:
            slots = queue.occupied_slots(view.deployments, (), {})
        queued = {other.name: other for other in (*view.queued, deployment)}
        return queue.startable(queued.values(), slots, view.last_ended, view.ceilings, self.config)

    def _wait_reason(self, deployment: Deployment) -> str:
        ceilings, default = self.queue_view.snapshot().ceilings, self.config.max_builds_per_project
        return queue.wait_reason(deployment.project, ceilings.get(deployment.project, default), self.config)

    def _find_built(
        self, deployment: Deployment, project: Project, key: str, others: Iterable[Deployment]
    ) -> Deployment | None:
        going = self.marked_for_deletion(project.name) or frozenset()
        removed = self.deleted_images(project.name) or frozenset()

        def is_reusable(other: Deployment) -> bool:
            # The images of an earlier Project of this name are deleted with it.
            if other.image in removed or not belongs_to(other, project):
                return False
            return proven_pod(self.config.token_keys, self.config.namespace, other) is not None

        return reuse.find_built(deployment, key, others, going, is_reusable)
