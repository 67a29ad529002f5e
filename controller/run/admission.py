"""Admission of Runs: the only module that gives pods to Runs; serial per project.

It reads candidates from the cache and the project's live pods from the apiserver (a linearizable
list, of names if these suffice). Each Run that fits a free slot gets a pod: a new one, or one that
waits for a run. It does not record the pod: the Run's own reconcile does. Called by
`controller.runtime.worker` under the key `admission/<project>`.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from itertools import chain
from typing import Any

import structlog

from controller.attestation.verify import ImageVerifier
from controller.config import ControllerConfig
from controller.owner import adoption
from controller.pods.secret_check import find_run_problem
from controller.run import pod, pod_ref, quota, resolve, status
from controller.run.decide import finish
from controller.run.end_metrics import record_end
from controller.run.observe import RunReader
from controller.run.outcome import failed
from controller.run.warm import binding
from controller.run.warm.pod import template
from controller.runtime import event_map
from controller.runtime.apply import Applier
from controller.runtime.decision import Create, Decision, ObjectEvent, difference
from controller.runtime.errors import Retry
from crds import kinds, names
from crds.limits import warm_pods
from crds.objects import Deployment, Pod, Project, Run
from crds.reasons import TERMINAL_RUN_PHASES, RunReason
from kube import errors

LOG = structlog.get_logger("admission")
MAX_PARALLEL_WRITES = 8
REFUSED_RETRY_SECONDS = 5.0
MAX_REFUSED_RETRY_SECONDS = 60.0
CONFLICT_RETRY_SECONDS = 0.5
NEXT_WARM_POD_SECONDS = 1.0
"""From a binding to the next waiting pod: its start takes processor time that the bound run needs."""
LIVE_POD_FIELDS = "status.phase!=Succeeded,status.phase!=Failed"


@dataclass(frozen=True)
class PodRefusal:
    """Why a Run has no pod; after `limit` seconds of it the Run fails."""

    reason: str
    message: str
    limit: float

    def retry_seconds(self, passed: float) -> float:
        """Return seconds until the next try, `passed` after the first: doubling where no slot is held."""
        holds_slot = self.reason == "PodRefused"
        longest = REFUSED_RETRY_SECONDS if holds_slot else MAX_REFUSED_RETRY_SECONDS
        return min(max(REFUSED_RETRY_SECONDS, passed), longest, self.limit - passed)


def _name_taken(run: Run, limit: float) -> PodRefusal:
    message = f"Another object owns pod {run.name}; delete it with kubectl delete pod {run.name}"
    return PodRefusal(status.POD_NAME_TAKEN, message, limit)


@dataclass(frozen=True)
class AdmissionReconciler:
    """Reconciler of a project's run queue."""

    applier: Applier
    config: ControllerConfig
    verifier: ImageVerifier | None = None

    async def reconcile(self, name: str) -> None:
        """Create pods for the first waiting Runs of a project. Raises `kube.errors`."""
        reader = RunReader(self.applier, event_map.admission(name))
        project = await reader.project(name)
        if project is None:
            return
        ready = {run.name: (run, found) async for run, found in self._resolve_candidates(reader, project)}
        if not ready:
            return
        live, secret = await asyncio.gather(self._live_pods(name, ready), reader.env_secret(name))
        variables = resolve.variable_names(secret)
        refused = await find_run_problem(self.applier.kube, project, secret, self.config.secret_use)
        limit = self.config.plans.of(project.plan).concurrent_runs
        refusals = await self._refusals(
            {run.name: (run, found) for run, found in ready.values() if run.uid not in live.owners}
        )
        admitted = quota.admit([run for run, _ in ready.values() if run.name not in refusals], live, limit)
        waiting: dict[str, Pod] = {}
        if refused is None and self.applier.cache.warm_pods(name):
            waiting = await self._waiting_pods(
                reader, project, secret, [ready[run.name] for run in admitted.admitted]
            )
        semaphore = asyncio.Semaphore(MAX_PARALLEL_WRITES)

        async def create_pod(run: Run) -> None:
            async with semaphore:
                if run.name not in waiting or not await self._bind(
                    reader, run, ready[run.name][1], waiting[run.name]
                ):
                    await self._create_pod(run, ready[run.name][1], variables, refused)

        async def record_refusal(name: str, refusal: PodRefusal) -> None:
            async with semaphore:
                await self._record_refusal(*ready[name], refusal)

        async def record_queued(run: Run, decision: Decision) -> None:
            async with semaphore:
                await self._apply(run, decision)

        def changed(now: datetime) -> Iterator[tuple[Run, Decision]]:
            # Most are unchanged.
            for run in admitted.queued:
                desired = status.queued(run, name, ready[run.name][1].deployment.name, limit, now)
                adopted = adoption(kinds.RUN, run, project)
                if adopted or difference(run.status, desired):
                    yield run, Decision(status=desired, after=adopted)

        # Pods first: an admitted Run does not wait for status writes of others.
        pod_results = await asyncio.gather(*map(create_pod, admitted.admitted), return_exceptions=True)
        status_results = await asyncio.gather(
            *(record_refusal(name, refusal) for name, refusal in refusals.items()),
            *(record_queued(run, decision) for run, decision in changed(datetime.now(UTC))),
            return_exceptions=True,
        )
        if waiting:
            self.applier.queues.add(event_map.warm(name), NEXT_WARM_POD_SECONDS)
        for outcome in (*pod_results, *status_results):
            if isinstance(outcome, BaseException):
                raise outcome

    async def _refusals(self, ready: Mapping[str, tuple[Run, resolve.RunReady]]) -> dict[str, PodRefusal]:
        """Return why Runs get no pod, by name, as far as it is known without a try: these take no slot."""
        timing = self.config.timing
        targets = {found.deployment.name: found for _, found in ready.values()}
        problems = await asyncio.gather(*map(self._unverified_image, targets.values()))
        unverified = dict(zip(targets, problems, strict=True))
        refusals: dict[str, PodRefusal] = {}
        for run, found in ready.values():
            if (problem := unverified[found.deployment.name]) is not None:
                refusals[run.name] = PodRefusal(status.IMAGE_NOT_VERIFIED, problem, timing.unschedulable)
            elif status.has_taken_name(run):
                raw = await self.applier.kube.get(kinds.POD, run.name)
                if raw is not None and not pod_ref.is_pod_of(run, Pod(raw)):
                    refusals[run.name] = _name_taken(run, timing.start_timeout)
        return refusals

    async def _live_pods(self, project: str, ready: Mapping[str, object]) -> quota.LivePods:
        """Count the pods that occupy a slot; list owners only if a pod may belong to a waiting Run."""
        # A pod that waits for a run has no run's label.
        selector = f"{names.LABEL_PROJECT}={project},{names.LABEL_COMPONENT}={names.COMPONENT_RUN}"
        selector += f",{names.LABEL_RUN}"
        pod_names = await self.applier.kube.names(kinds.POD, selector, LIVE_POD_FIELDS)
        if pod_names.isdisjoint(ready) and not any(one.startswith(names.WARM_PREFIX) for one in pod_names):
            return quota.count_live(pod_names, self._frees_slot)
        runs: list[str] = []
        owners: set[str] = set()
        async for page in self.applier.kube.pages(kinds.POD, selector, LIVE_POD_FIELDS):
            for raw in page.items:
                # A pod created before a restart is new to its Run.
                self.applier.handlers.on_change(kinds.POD, raw)
                pod = Pod(raw)
                runs.append(pod.run or pod.name)
                owners |= pod.owner_uids
        return quota.count_live(runs, self._frees_slot, owners)

    async def _waiting_pods(
        self,
        reader: RunReader,
        project: Project,
        secret: Mapping[str, Any] | None,
        runs: list[tuple[Run, resolve.RunReady]],
    ) -> dict[str, Pod]:
        """Return the pods that wait for a run and suit the admitted ones, by the Run's name."""
        active = await reader.deployment(project.active)
        if (
            active is None
            or not active.built
            or not warm_pods(project, self.config.plans, self.config.limits_of(project))
        ):
            return {}
        if await self._unverified_image(resolve.RunReady(project, active)) is not None:
            return {}
        source = template(project, active, secret, self.config)
        pods = map(Pod, self.applier.cache.warm_pods(project.name))
        return binding.assign(runs, pods, source, datetime.now(UTC), self.config.limits.warm_seconds)

    async def _bind(self, reader: RunReader, run: Run, ready: resolve.RunReady, waiting: Pod) -> bool:
        """Give a waiting pod to the Run; return False if the Run has none then: it starts cold."""
        now = datetime.now(UTC)
        try:
            try:
                await self.applier.patch(binding.bind(run, ready, waiting, self.config, now))
            except errors.KubeConflict:
                # Mostly the kubelet wrote its status: once more, if it still waits.
                raw = await self.applier.kube.get(kinds.POD, waiting.name)
                current = Pod(raw) if raw is not None else None
                if current is None or not binding.still_waits(current, waiting):
                    raise
                await self.applier.patch(binding.bind(run, ready, current, self.config, now))
        except (errors.KubeConflict, errors.KubeNotFound, errors.KubeForbidden, errors.Invalid) as error:
            LOG.info("waiting pod not bound", run=run.name, pod=waiting.name, problem=str(error))
            self.applier.metrics.warm_binds.labels("lost").inc()
            # Another controller may have given the Run a pod at this moment.
            return await reader.pod(run, live=True) is not None
        self.applier.metrics.warm_binds.labels("bound").inc()
        self.applier.metrics.queued.observe(max(0.0, (now - run.created).total_seconds()))
        return True

    async def _resolve_candidates(
        self, reader: RunReader, project: Project
    ) -> AsyncIterator[tuple[Run, resolve.RunReady]]:
        for run in self._candidates(project.name):
            deployment = await reader.deployment(resolve.target(run, project))
            resolution = resolve.resolve(run, project, deployment, datetime.now(UTC))
            if isinstance(resolution, resolve.RunReady):
                yield run, resolution

    def _candidates(self, project: str) -> Iterator[Run]:
        cache = self.applier.cache
        unresolved = (
            raw
            for raw in cache.of_project(kinds.RUN, None)
            if self._project_of(Run(raw).deployment) == project
        )
        for raw in chain(cache.of_project(kinds.RUN, project), unresolved):
            if raw["status"].get("phase") in TERMINAL_RUN_PHASES:
                # Most cached Runs, if runs are short.
                continue
            run = Run(raw)
            if cache.get(kinds.RUN, run.name) is None:
                # Stale: its own reconcile reads it and enqueues this key.
                continue
            if not (run.cancel or run.deleting or self._has_pod(run)):
                yield run

    def _has_pod(self, run: Run) -> bool:
        if pod_ref.pod_uid(run) is not None:
            return True
        return any(pod_ref.is_pod_of(run, Pod(raw)) for raw in self.applier.cache.pods_of_run(run.name))

    def _project_of(self, deployment: str | None) -> str | None:
        raw = self.applier.cache.get(kinds.DEPLOYMENT, deployment) if deployment else None
        return Deployment(raw).project if raw else None

    def _frees_slot(self, name: str) -> bool:
        """Return whether the Run has ended or has reported a result: its slot is free."""
        raw = self.applier.cache.get(kinds.RUN, name)
        return raw is not None and (Run(raw).ended or Run(raw).result is not None)

    async def _create_pod(
        self, run: Run, ready: resolve.RunReady, variables: frozenset[str], refused: str | None
    ) -> None:
        now, project, timing = datetime.now(UTC), ready.project, self.config.timing
        if refused is not None:
            await self._record_refusal(run, ready, PodRefusal("PodRefused", refused, timing.unschedulable))
            return
        if (missing := resolve.missing_variable(ready, variables)) is not None:
            await self._fail(run, ready, missing.reason, missing.message, now)
            return
        body = pod.build(run, project, ready.deployment, variables, self.config, now.timestamp())
        try:
            await self.applier.create(Create(kinds.POD, body), run.uid)
        except (errors.KubeForbidden, errors.Invalid) as error:
            if errors.is_final(error):
                message = f"The apiserver rejected the pod as invalid: {error.message}"
                await self._fail(run, ready, RunReason.START_TIMEOUT, message, now)
                return
            # A quota or an admission policy, which may be temporary.
            message = f"The apiserver rejected pod {run.name}: {error.message}"
            await self._record_refusal(run, ready, PodRefusal("PodRefused", message, timing.unschedulable))
        except errors.WebhookUnavailable as error:
            # No deadline: nothing has rejected the pod.
            message = f"The apiserver could not create pod {run.name}: {error.message}"
            waiting = status.pending(run, "PodRefused", message, now)
            await self._apply_resolved(
                run, ready, Decision(status=waiting, requeue_after=REFUSED_RETRY_SECONDS)
            )
        except Retry:
            await self._record_refusal(run, ready, _name_taken(run, timing.start_timeout))
            # The slot is free for another Run.
            self.applier.queues.add(event_map.admission(project.name))
        else:
            self.applier.metrics.queued.observe(max(0.0, (now - run.created).total_seconds()))

    async def _unverified_image(self, ready: resolve.RunReady) -> str | None:
        if self.verifier is None:
            return None
        return await self.verifier.problem(ready.project, ready.deployment)

    async def _fail(
        self, run: Run, ready: resolve.RunReady, reason: RunReason, message: str, now: datetime
    ) -> None:
        decision = finish(run, ready.project, failed(reason, message), now)
        count = partial(record_end, self.applier.metrics, run, decision, self.config.traces)
        await self._apply_resolved(run, ready, decision, count)

    async def _record_refusal(self, run: Run, ready: resolve.RunReady, refusal: PodRefusal) -> None:
        """Record why there is no pod; fail the Run after `limit` seconds."""
        now, limit, message = datetime.now(UTC), refusal.limit, refusal.message
        since = status.pod_refused_since(run, refusal.reason, now)
        passed = (now - since).total_seconds()
        if passed >= limit:
            await self._fail(run, ready, RunReason.START_TIMEOUT, f"{message} (for {limit:g} s)", now)
            return
        desired = status.pod_refused(run, refusal.reason, message, now)
        notes = (ObjectEvent(refusal.reason, message, True),) if since == now else ()
        decision = Decision(status=desired, events=notes, requeue_after=refusal.retry_seconds(passed))
        await self._apply_resolved(run, ready, decision)

    async def _apply_resolved(
        self,
        run: Run,
        ready: resolve.RunReady,
        decision: Decision,
        on_status: Callable[[], None] = lambda: None,
    ) -> None:
        resolved = status.resolved(ready.project, ready.deployment)
        decision = replace(decision, status={**(decision.status or {}), **resolved})
        await self._apply(run, decision, on_status)

    async def _apply(
        self, run: Run, decision: Decision, on_status: Callable[[], None] = lambda: None
    ) -> None:
        try:
            await self.applier.apply(kinds.RUN, run.raw, event_map.run(run.name), decision, on_status)
        except errors.KubeConflict:
            # The cached Run is stale now, and a watch that has delivered the change does not repeat it.
            self.applier.queues.add(event_map.run(run.name), CONFLICT_RETRY_SECONDS)
            raise
