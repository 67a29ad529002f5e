"""Image garbage collection of a Project; calls the apiserver only if something has expired.

Called by `controller.project.reconcile` after its own writes.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import structlog

from controller.config import ControllerConfig
from controller.images import decide, deleted_project
from controller.images import pod as prune_pod
from controller.images.decide import ObservedImages, PruneRefusals
from controller.images.deleted_project import RemainingImages
from controller.images.pod import ImageDeletions
from controller.owner import belongs_to
from controller.pods import push_secret
from controller.pods.secret_check import find_problem
from controller.runtime import event_map
from controller.runtime.apply import Applier
from controller.runtime.decision import Create, Decision
from controller.runtime.resync import UNFINISHED_RUN
from crds import kinds, names
from crds.objects import Deployment, Pod, Project, Run
from crds.secrets.use import build_references
from kube import errors

LOG = structlog.get_logger("retain")


@dataclass(frozen=True)
class ImageCollector:
    """Deletes expired Deployments and images. Builds that reuse an image also hold `lock`."""

    applier: Applier
    config: ControllerConfig
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    deleting: dict[str, ImageDeletions] = field(default_factory=dict)
    remaining: dict[str, RemainingImages] = field(default_factory=dict)
    """By Project: the images that its deletion would leave in the registry.

    Until their cleanup has started, those of a deleted one of this name.
    """
    refused: dict[str, PruneRefusals] = field(default_factory=dict)
    """By Project: when a prune pod that the kube-apiserver refused is tried again."""
    cleaning_up: set[str] = field(default_factory=set)
    """Names of deleted Projects with images to delete; the cache soon evicts finished prune pods."""

    def marked_for_deletion(self, project: str) -> frozenset[str] | None:
        """Return Deployments whose images are deleted or being deleted; None before the first reconcile."""
        deletions = self.deleting.get(project)
        return deletions.deployments if deletions else None

    def deleted_images(self, project: str) -> frozenset[str] | None:
        """Return images that are deleted or being deleted; None before the Project's first reconcile."""
        deletions = self.deleting.get(project)
        return deletions.images if deletions else None

    async def refresh(self, name: str) -> frozenset[str]:
        """Refresh and return the marked Deployments; list prune pods only if there may be any."""
        if (
            name not in self.deleting
            or self.deleting[name] != ImageDeletions()
            or self._has_cached_pods(name)
        ):
            self.deleting[name] = prune_pod.image_deletions(await self._pods(name))
        return self.deleting[name].deployments

    async def collect(self, project: Project, deployments: Sequence[Deployment]) -> None:
        """Advance the deletion of expired images. Raises `kube.errors`; the worker then retries.

        Deployments that an earlier Project of this name owns do not count: they are deleted with that.
        """
        deployments = [one for one in deployments if belongs_to(one, project)]
        now, earlier = datetime.now(UTC), self.remaining.get(project.name)
        if earlier is None or earlier.project.uid == project.uid:
            earlier = None
            self.remaining[project.name] = deleted_project.remaining_images(project, deployments, self.config)
        cached = ObservedImages(project, deployments, self._cached_run_deployments(project.name), ())
        # The resync evicts a finished pod, but its objects may not be deleted yet.
        in_progress = self.deleting.get(
            project.name, ImageDeletions()
        ) != ImageDeletions() or self._has_cached_pods(project.name)
        if not in_progress and earlier is None and not decide.has_work(cached, now, self.config):
            return
        async with self.lock:
            raw = await self.applier.kube.get(kinds.PROJECT, project.name)
            if raw is None or Project(raw).deleting:
                return
            listing = await self.applier.kube.list(kinds.DEPLOYMENT, fields=f"spec.project={project.name}")
            runs = await self.applier.kube.list(kinds.RUN, fields=UNFINISHED_RUN)
            needed = frozenset(run.deployment or "" for run in map(Run, runs.items))
            pods, present = await self._pods(project.name), [Deployment(item) for item in listing.items]
            deployments = [one for one in present if belongs_to(one, project)]
            if earlier is not None:
                earlier = deleted_project.unused_images(earlier, present, self.config)
            left_over = earlier is not None or not all(pod.owner_uids for pod in pods)
            if left_over and not self._is_refused(project.name, now):
                if await self._clean_up(project.name, earlier, pods, now):
                    self.remaining[project.name] = deleted_project.remaining_images(
                        project, deployments, self.config
                    )
                pods = await self._pods(project.name)
            own = [pod for pod in pods if pod.owner_uids]
            observed = ObservedImages(Project(raw), deployments, needed, own)
            decision = await self._apply(raw, decide.decide(observed, now, self.config), now)
            created = [Pod(child.body) for child in decision.create]
            self.deleting[project.name] = prune_pod.image_deletions([*pods, *created])

    async def _apply(self, raw: Mapping[str, Any], decision: Decision, now: datetime) -> Decision:
        """Apply a Decision, without its pod while that is refused; return what was applied."""
        name = Project(raw).name
        key, refused, why = event_map.project(name), self.refused.get(name), None
        if not decision.create:
            await self.applier.apply(kinds.PROJECT, raw, key, decision)
            return decision
        if refused is None or now >= refused.retry_at:
            why = await self._apply_with_pod(raw, decision)
            if why is None:
                self.refused.pop(name, None)
                return decision
            refused = self.refused[name] = decide.next_refusal(refused, now)
        waits = decide.without_pod(decision, refused, now, why or "")
        await self.applier.apply(kinds.PROJECT, raw, key, waits)
        return waits

    async def _apply_with_pod(self, raw: Mapping[str, Any], decision: Decision) -> str | None:
        """Apply a Decision that creates a pod; return why that is refused, None if it is not."""
        project = Project(raw)
        if (problem := await self._secret_problem(project)) is not None:
            return problem
        try:
            await self.applier.apply(kinds.PROJECT, raw, event_map.project(project.name), decision)
        except (errors.KubeForbidden, errors.Invalid, errors.WebhookUnavailable) as error:
            if not str(error.details.get("kind", "")).lower().startswith("pod"):
                raise
            return error.message
        return None

    async def _secret_problem(self, project: Project) -> str | None:
        """Return why the Project may not use the Secret that its prune pod would get; None if it may."""
        name = push_secret.push_secret(project, self.config)
        own = [one for one in build_references(project, self.config.registry) if one.name == name]
        return await find_problem(self.applier.kube, project, own, self.config.secret_use)

    async def collect_deleted_project(self, project: str) -> None:
        """Delete the images of a deleted Project. Raises `kube.errors`; the worker then retries."""
        async with self.lock:
            now = datetime.now(UTC)
            if project in self.cleaning_up and self._is_refused(project, now):
                return
            remaining = self.remaining.get(project)
            if remaining is not None and await self._has_orphans(project):
                remaining = None
            left_over = remaining is not None or project in self.cleaning_up or self._has_cached_pods(project)
            if left_over and not await self._clean_up(project, remaining, await self._pods(project), now):
                return
            for known in (self.remaining, self.deleting, self.refused):
                known.pop(project, None)

    async def _clean_up(
        self, project: str, remaining: RemainingImages | None, pods: Sequence[Pod], now: datetime
    ) -> bool:
        """Advance the cleanup for a deleted Project; return False if a refused pod is tried again later."""
        decision = deleted_project.decide(remaining, pods, now, self.config)
        for child in decision.create:
            last = remaining.project if remaining is not None else None
            created = await self._create_unowned(project, last, child)
            if not created and self._tries_again(project, now):
                self.cleaning_up.add(project)
                return False
        for deletion in decision.delete:
            await self.applier.delete(deletion)
        if decision.requeue_after is not None:
            self.applier.queues.add(event_map.project(project), decision.requeue_after)
        unfinished = decision.create or decision.requeue_after is not None
        (self.cleaning_up.add if unfinished else self.cleaning_up.discard)(project)
        return True

    def _is_refused(self, project: str, now: datetime) -> bool:
        """Return whether a refused pod waits for its next try; enqueue that."""
        refused = self.refused.get(project)
        if refused is None or now >= refused.retry_at:
            return False
        # The reconcile of a deleted Project has dropped the delayed key.
        self.applier.queues.add(event_map.project(project), (refused.retry_at - now).total_seconds())
        return True

    async def _has_orphans(self, project: str) -> bool:
        """Return whether the deletion of a Project has left Deployments, as with `--cascade=orphan`."""
        listing = await self.applier.kube.list(kinds.DEPLOYMENT, fields=f"spec.project={project}")
        return any(Deployment(item).owner_uid(kinds.PROJECT) is None for item in listing.items)

    async def _create_unowned(self, project: str, last: Project | None, child: Create) -> bool:
        """Create a pod without an owner; return False if it is rejected.

        `last` is what the Project was; None if the pod repeats an earlier one, which was checked.
        """
        if last is not None and (problem := await self._secret_problem(last)) is not None:
            LOG.warning("images of a deleted project not deleted", project=project, problem=problem)
            return False
        try:
            self.applier.handlers.on_change(kinds.POD, await self.applier.kube.create(kinds.POD, child.body))
            self.applier.metrics.writes.labels(kinds.POD.plural, "create").inc()
        except errors.AlreadyExists:
            return True
        except (errors.KubeForbidden, errors.Invalid, errors.KubeNotFound) as error:
            LOG.warning("images of a deleted project not deleted", project=project, problem=error.message)
            return False
        return True

    def _tries_again(self, project: str, now: datetime) -> bool:
        """Schedule the next try to create a rejected pod; return False if none is left: the images stay.

        A quota may have room later, a terminating namespace has none.
        """
        refused = decide.next_refusal(self.refused.get(project), now)
        if refused.count >= deleted_project.MAX_REFUSED_PODS:
            return False
        self.refused[project] = refused
        self.applier.queues.add(event_map.project(project), (refused.retry_at - now).total_seconds())
        return True

    async def _pods(self, project: str) -> list[Pod]:
        labels = f"{names.LABEL_PROJECT}={project},{names.LABEL_COMPONENT}={event_map.COMPONENT_PRUNE}"
        return [Pod(raw) for raw in (await self.applier.kube.list(kinds.POD, labels)).items]

    def _has_cached_pods(self, project: str) -> bool:
        pods = map(Pod, self.applier.cache.of_project(kinds.POD, project))
        return any(pod.labels.get(names.LABEL_COMPONENT) == event_map.COMPONENT_PRUNE for pod in pods)

    def _cached_run_deployments(self, project: str) -> frozenset[str]:
        # A Run may name a Deployment and no Project.
        runs = [
            Run(raw) for name in (project, None) for raw in self.applier.cache.of_project(kinds.RUN, name)
        ]
        return frozenset(run.deployment or "" for run in runs if not run.ended)
