"""Reconcile of one Deployment: observe, decide, apply. Called by `controller.runtime.worker`."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from controller.config import ControllerConfig
from controller.deployment import build_pod_env, queue
from controller.deployment.build_admission import BUILD_POD_LABELS, BuildAdmission
from controller.deployment.deadlines import STOP_GRACE_SECONDS
from controller.deployment.decide import WAIT_RETRY_SECONDS, ObservedDeployment, decide
from controller.deployment.pod import base_of
from controller.deployment.pod_rejected import pod_prevented, pod_refused
from controller.deployment.reported_results import ReportedResults, as_ended
from controller.deployment.smoke.run_rejected import run_refused
from controller.deployment.warm.pool import WarmBuilders
from controller.pods.secret_check import find_problem
from controller.runtime import event_map
from controller.runtime.apply import Applier
from controller.runtime.decision import Decision, Delete
from controller.runtime.errors import Retry
from controller.runtime.workqueue import ReconcileKey
from crds import kinds, names
from crds.objects import Deployment, Pod, Project, Run
from crds.secrets.use import build_references, git_reference, pull_references
from kube import errors

NOT_READY_RETRY_SECONDS = 0.1


@dataclass(frozen=True)
class DeploymentReconciler:
    """Reconciler of the kind Deployment."""

    applier: Applier
    config: ControllerConfig
    admission: BuildAdmission
    builders: WarmBuilders
    reported_results: ReportedResults = field(default_factory=ReportedResults)

    async def reconcile(self, name: str) -> None:
        """Reconcile one build. Raises `kube.errors`; the worker then retries."""
        key = event_map.deployment(name)
        if self.admission.still_queued(name):
            self.applier.queues.add(key, WAIT_RETRY_SECONDS)
            return
        deployment = await self._deployment(name, key)
        if deployment is None:
            self.applier.queues.remove(key)
            self.applier.cache.remove(kinds.DEPLOYMENT, name)
            await self._stop_orphans(name)
            self.admission.enqueue_startable()
            return
        if not queue.is_waiting(deployment):
            await self._during_build(deployment)
        elif not self.admission.ready():
            # Other builds and earlier Deployments are not cached yet.
            self.applier.queues.add(key, NOT_READY_RETRY_SECONDS)
        else:
            await self._before_build(deployment)

    async def _deployment(self, name: str, key: ReconcileKey) -> Deployment | None:
        """Return the Deployment, from the cache unless its build may start; patches have a precondition."""
        raw = await self.applier.get(kinds.DEPLOYMENT, name, key)
        if raw is None or not queue.is_waiting(Deployment(raw)):
            return Deployment(raw) if raw else None
        raw = await self.applier.kube.get(kinds.DEPLOYMENT, name)
        if raw is not None:
            # Through the event handlers: a version first seen here must enqueue other keys too.
            self.applier.handlers.on_change(kinds.DEPLOYMENT, raw, key)
        return Deployment(raw) if raw else None

    async def _before_build(self, deployment: Deployment) -> None:
        project = await self._live_project(deployment)
        if project is None:
            await self._apply(ObservedDeployment(deployment, None, ()))
            return
        if self.admission.marked_for_deletion(project.name) is None:
            # Images being deleted are known after the first reconcile of the Project.
            self.applier.queues.add(event_map.deployment(deployment.name), NOT_READY_RETRY_SECONDS)
            return
        key = self.admission.source_key(deployment, project)
        if key is not None:
            async with self.admission.image_lock:
                reusable = await self.admission.reusable_build(deployment, project, key)
                if reusable is not None:
                    await self._apply(
                        ObservedDeployment(deployment, project, (), source_key=key, reusable=reusable)
                    )
                    return
            same = self.admission.identical_build_in_progress(deployment, key)
            if same is not None:
                await self._apply(
                    ObservedDeployment(deployment, project, (), source_key=key, in_progress=same)
                )
                return
        waits = self.admission.cached_wait_reason(deployment)
        if waits:
            await self._apply(ObservedDeployment(deployment, project, (), waits, key))
            return
        # Serialised, or two builds could take the same last slot.
        async with self.admission.slot_lock:
            pods = await self._pods(deployment)
            waits = "" if pods else await self.admission.live_wait_reason(deployment)
            proven = self.admission.proven_images(project.name)
            await self._apply(ObservedDeployment(deployment, project, pods, waits, key, proven=proven))

    async def _during_build(self, deployment: Deployment) -> None:
        finished = not queue.occupies_slot(deployment)
        project, pods = await self._cached_project(deployment), await self._pods(deployment)
        if finished or project is None:
            run = await self._smoke_run(deployment)
            await self._apply(ObservedDeployment(deployment, project, pods, smoke_run=run))
        elif self.admission.deleted_images(project.name) is None:
            self.applier.queues.add(event_map.deployment(deployment.name), NOT_READY_RETRY_SECONDS)
        elif not any(pod.finished for pod in pods):
            await self._apply(self._observe(deployment, project, pods))
        else:
            # The pod may have found an image in the registry; only the lock guarantees that it stays.
            async with self.admission.image_lock:
                await self._apply(self._observe(deployment, project, pods))
        if finished:
            self.admission.enqueue_startable()

    async def _smoke_run(self, deployment: Deployment) -> Run | None:
        """Return the smoke run, read from the apiserver: the cache has no errors of ended Runs."""
        if not deployment.awaits_smoke_run or deployment.failed:
            return None
        raw = await self.applier.kube.get(kinds.RUN, names.smoke_run(deployment.uid))
        run = Run(raw) if raw else None
        return run if run is not None and deployment.uid in run.owner_uids else None

    def _observe(self, deployment: Deployment, project: Project, pods: list[Pod]) -> ObservedDeployment:
        removed = self.admission.deleted_images(project.name) or frozenset()
        proven = self.admission.proven_images(project.name)
        # Of the settings that the next pod gets: the Project may have changed since the first one.
        key = self.admission.source_key(deployment, project)
        return ObservedDeployment(
            deployment, project, pods, source_key=key, deleted_images=removed, proven=proven
        )

    async def _live_project(self, deployment: Deployment) -> Project | None:
        if self.applier.is_hidden(kinds.PROJECT, deployment.project):
            return None
        return _present(await self.applier.kube.get(kinds.PROJECT, deployment.project))

    async def _cached_project(self, deployment: Deployment) -> Project | None:
        by = event_map.deployment(deployment.name)
        return _present(await self.applier.get(kinds.PROJECT, deployment.project, by))

    async def _pods(self, deployment: Deployment) -> list[Pod]:
        """Return the build pods; stop those of an earlier Deployment of this name."""
        pods = []
        for pod in await self._list_pods(deployment.name):
            if deployment.uid in pod.owner_uids:
                pods.append(as_ended(pod, self.reported_results.get(deployment.uid, pod.uid)))
            else:
                await self._stop(pod)
        return pods

    async def _list_pods(self, name: str) -> list[Pod]:
        listing = await self.applier.kube.list(
            kinds.POD, f"{names.LABEL_DEPLOYMENT}={name},{BUILD_POD_LABELS}"
        )
        return [Pod(raw) for raw in listing.items]

    async def _stop_orphans(self, name: str) -> None:
        """Stop the build pods of a deleted Deployment; the garbage collector is slow."""
        for pod in await self._list_pods(name):
            await self._stop(pod)

    async def _stop(self, pod: Pod) -> None:
        grace = int(pod.metadata.get("deletionGracePeriodSeconds") or STOP_GRACE_SECONDS + 1)
        if not pod.finished and (not pod.deleting or grace > STOP_GRACE_SECONDS):
            await self.applier.delete(Delete(kinds.POD, pod.name, pod.uid, STOP_GRACE_SECONDS))

    async def _apply(self, observed: ObservedDeployment) -> None:
        deployment, now = observed.deployment, datetime.now(UTC)
        key = event_map.deployment(deployment.name)
        decision = decide(observed, now, self.config)
        if deployment.awaits_smoke_run and decision.create:
            await self._start_smoke_run(observed, decision, now)
            return
        if decision.create and observed.project is not None:
            decision = await self._with_waiting_pod(deployment, observed.project, decision)
        if decision.create and (refused := await self._secret_problem(observed, decision)) is not None:
            hint = "Label the Secret, or name another one in the Project."
            decision = pod_refused(observed, refused, False, now, self.config, hint)
        try:
            await self.applier.apply(kinds.DEPLOYMENT, deployment.raw, key, decision)
        except (errors.KubeForbidden, errors.Invalid, errors.WebhookUnavailable) as error:
            if not decision.create or not str(error.details.get("kind", "")).lower().startswith("pod"):
                raise
            if isinstance(error, errors.WebhookUnavailable):
                decision = pod_prevented(observed, error.message, now)
            else:
                why = f"the apiserver rejected the build pod: {error.message}"
                decision = pod_refused(observed, why, errors.is_final(error), now, self.config)
            await self.applier.apply(kinds.DEPLOYMENT, deployment.raw, key, decision)
        self._record_metrics(deployment, decision, now)

    async def _with_waiting_pod(
        self, deployment: Deployment, project: Project, decision: Decision
    ) -> Decision:
        """Give a waiting pod to the build; return the Decision without the pod to create then."""
        pod = decision.create[0]
        bound = await self.builders.take(deployment, project, pod.body)
        if bound is None:
            return decision
        # As for a pod that is created: once it is bound, even if the status cannot be written now.
        self.applier.record(kinds.DEPLOYMENT, deployment.raw, pod.events)
        return replace(decision, create=(), status={**(decision.status or {}), "buildPod": bound.name})

    async def _start_smoke_run(self, observed: ObservedDeployment, decision: Decision, now: datetime) -> None:
        deployment = observed.deployment
        key = event_map.deployment(deployment.name)
        try:
            await self.applier.create(decision.create[0], deployment.uid)
        except (errors.KubeForbidden, errors.Invalid) as error:
            decision = run_refused(observed, error.message, errors.is_final(error), now, self.config)
        except Retry as error:
            decision = run_refused(observed, str(error), False, now, self.config)
        await self.applier.apply(kinds.DEPLOYMENT, deployment.raw, key, replace(decision, create=()))
        self._record_metrics(deployment, decision, now)

    async def _secret_problem(self, observed: ObservedDeployment, decision: Decision) -> str | None:
        """Return why the Project may not use a Secret that the next pod of its build would get."""
        project = observed.project
        if project is None:
            return None
        references = list(build_references(project, self.config.registry))
        if build_pod_env.git(observed.deployment, project) and (git := git_reference(project)) is not None:
            references.append(git)
        if base_of([Pod(child.body) for child in decision.create]):
            references += pull_references(project)
        return await find_problem(self.applier.kube, project, references, self.config.secret_use)

    def _record_metrics(self, deployment: Deployment, decision: Decision, now: datetime) -> None:
        status = decision.status or {}
        after = Deployment({**deployment.raw, "status": {**deployment.status, **status}})
        had_started = queue.has_started(deployment)
        result = "failed" if after.failed else "built" if had_started else "reused"
        build_ended = bool(after.image or after.failed) and not deployment.image
        ended = (after.built or after.failed) and not (deployment.built or deployment.failed)
        if build_ended:
            self.applier.metrics.builds.labels(result).observe((now - deployment.created).total_seconds())
        if ended:
            reason = str((after.error or {}).get("reason", ""))
            self.applier.metrics.build_ends.labels(result, reason).inc()
        gives_up = had_started and status.get("buildPod", "") is None
        begins = bool(status.get("buildPod")) and not had_started
        if build_ended or ended or gives_up or begins:
            self.admission.enqueue_startable()


def _present(raw: Mapping[str, Any] | None) -> Project | None:
    """Return the Project unless it is missing or being deleted."""
    project = Project(raw) if raw else None
    return None if project is None or project.deleting else project
