"""Reconcile of one Project, serial: observe, decide, apply. Called by `controller.runtime.worker`."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial

from controller.config import ControllerConfig
from controller.images.reconcile import ImageCollector
from controller.owner import belongs_to
from controller.pods.run_egress import allowed_rules
from controller.project import activation, egress_policy, name_taken, revision
from controller.project.coalesce import CoalescingWindow
from controller.project.decide import decide
from controller.runtime import event_map
from controller.runtime.apply import Applier
from controller.runtime.decision import Create
from controller.runtime.errors import Retry
from controller.source.observed import ObservedSource, ObservedSources
from crds import kinds
from crds.limits import (
    lowered_retained_deployments,
    lowered_timeouts,
    lowered_warm_builders,
    lowered_warm_pods,
    unknown_plan,
)
from crds.objects import Deployment, Object, Project
from kube import errors

DELETION_RETRY_SECONDS = 5.0
POLICY_CHECK_SECONDS = 60.0


@dataclass(frozen=True)
class ProjectReconciler:
    """Reconciler of the kind Project."""

    applier: Applier
    config: ControllerConfig
    observed_sources: ObservedSources
    image_collector: ImageCollector
    source_key: Callable[[Deployment, Project], str | None]
    without_policy: set[str] = field(default_factory=set)
    """Names of Projects that were seen to need and to have no NetworkPolicy."""

    async def reconcile(self, name: str) -> None:
        """Reconcile one Project. Raises `kube.errors`; the worker then retries."""
        raw = await self.applier.kube.get(kinds.PROJECT, name)
        if raw is None:
            self.applier.cache.remove(kinds.PROJECT, name)
            self.applier.project_names.forget(name)
            self.observed_sources.remove(name)
            self.without_policy.discard(name)
            self.applier.queues.remove(event_map.project(name))
            await self.image_collector.collect_deleted_project(name)
            return
        # Through the event handlers: a version first seen here must enqueue other keys too.
        self.applier.handlers.on_change(kinds.PROJECT, raw, event_map.project(name))
        project = Project(raw)
        if project.deleting:
            return
        if self.applier.is_hidden(kinds.PROJECT, name):
            taken = name_taken.decide(project, datetime.now(UTC))
            await self.applier.apply(kinds.PROJECT, raw, event_map.project(name), taken)
            return
        listing, refusal = await asyncio.gather(
            self.applier.kube.list(kinds.DEPLOYMENT, fields=f"spec.project={name}"),
            self._apply_egress(project),
        )
        all_deployments = [Deployment(item) for item in listing.items]
        # A Deployment whose image is being deleted counts as deleted: no rollback to it. So does one that an
        # earlier Project of this name owns: it is deleted with that.
        marked = await self.image_collector.refresh(name)
        deployments = [
            deployment
            for deployment in all_deployments
            if deployment.name not in marked and belongs_to(deployment, project)
        ]
        if not all(deployment.owner_uids for deployment in deployments) and not await self._exists(project):
            # It is being deleted and leaves them: it must not adopt them again.
            return
        observed = self.observed_sources.get(name)
        limits = self.config.limits_of(project)
        decide_with = partial(
            decide,
            project,
            deployments,
            observed,
            datetime.now(UTC),
            self._coalescing(project, deployments),
            (
                *unknown_plan(project, self.config.plans),
                *self.config.placements.notes(project),
                *lowered_timeouts(project, limits),
                *lowered_warm_pods(project, self.config.plans, limits),
                *lowered_warm_builders(project, limits),
                *lowered_retained_deployments(project, limits),
            ),
            (
                *allowed_rules(project, self.config.run_egress)[1],
                *([egress_policy.refusal_note(name, refusal)] if refusal else ()),
            ),
        )
        decision = decide_with()
        if any(child.name in marked for child in decision.create):
            # The head returned to a commit whose Deployment is being deleted: its name is free after that.
            decision = replace(decision, create=(), enqueue=(), requeue_after=DELETION_RETRY_SECONDS)
        # Before any await: every head seen from now on follows this one.
        if observed is not None and observed.commit and not decision.requeue_after:
            self.observed_sources.mark_deployed(name, observed.commit)
        try:
            await self.applier.apply(kinds.PROJECT, raw, event_map.project(name), decision)
        except (errors.KubeForbidden, errors.Invalid) as error:
            if not decision.create or not str(error.details.get("kind", "")).startswith("deployment"):
                raise
            # A quota or a policy, mostly: orders, rollbacks and all else go on.
            refusal = error
            without = decide_with(refusal=error.message)
            await self.applier.apply(kinds.PROJECT, raw, event_map.project(name), without)
        self._request_poll(project, deployments, observed)
        await self.image_collector.collect(project, all_deployments)
        if refusal is not None:
            # The worker tries again: what corrects a role, a quota or another policy changes no Project.
            raise refusal

    async def _exists(self, project: Project) -> bool:
        raw = await self.applier.kube.get(kinds.PROJECT, project.name)
        return raw is not None and raw["metadata"]["uid"] == project.uid and not Project(raw).deleting

    async def _apply_egress(self, project: Project) -> errors.KubeError | Retry | None:
        """Create, change or delete the NetworkPolicy of the Project's runs; return what prevents it."""
        needed = bool(allowed_rules(project, self.config.run_egress)[0])
        if not needed and project.name in self.without_policy:
            return None
        try:
            policy = await self.applier.kube.get(
                kinds.NETWORK_POLICY, egress_policy.policy_name(project.name)
            )
            egress = egress_policy.decide(project, Object(policy) if policy else None, self.config.run_egress)
            await self.applier.apply(kinds.PROJECT, project.raw, event_map.project(project.name), egress)
        except (errors.Invalid, errors.KubeForbidden, Retry) as error:
            return error
        if needed:
            # NetworkPolicies are not watched: another client may delete or change this one.
            self.applier.queues.add(event_map.project(project.name), POLICY_CHECK_SECONDS)
        if needed or policy is not None:
            self.without_policy.discard(project.name)
        else:
            self.without_policy.add(project.name)
        return None

    def _coalescing(self, project: Project, deployments: list[Deployment]) -> CoalescingWindow:
        keys = {deployment.status.get("sourceKey") for deployment in deployments if deployment.built}

        def has_image(create: Create) -> bool:
            return self.source_key(Deployment(create.body), project) in keys - {None}

        return CoalescingWindow(self.config.timing.coalescing_window, has_image)

    def _request_poll(
        self, project: Project, deployments: list[Deployment], observed: ObservedSource | None
    ) -> None:
        """Request a poll for posted commits that the last poll may have been too early to see."""
        current = (
            observed
            if observed is not None and observed.matches(project) and observed.problem is None
            else None
        )
        if project.git is None or project.git.get("suspend"):
            return
        resolved = revision.resolve_revision(project, deployments, current) if current else revision.NO_HEAD
        unobserved = activation.assign_orders(project, deployments, resolved).unobserved
        if self.observed_sources.request(project.name, set(unobserved)):
            self.applier.queues.add(event_map.source(project.name))
