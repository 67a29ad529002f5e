"""The admission: the one place where run pods are made, serial per project.

A look at a project's queue: candidates from what is known, the project's live
pods from the apiserver (a linearizable list, of names where these are enough), a
pod for each Run that a place is free for. A pod that is made is not recorded here:
the Run's own reconcile sees it. Called by `controller.runtime.worker` under the key `admission/<project>`.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from controller.config import Config
from controller.owner import adoption
from controller.run import pod, pod_ref, quota, resolve, status
from controller.run.decide import ending
from controller.run.observe import Observer
from controller.run.outcome import failed
from controller.runtime import event_map
from controller.runtime.apply import Actor
from controller.runtime.decision import Create, Decision, Note, difference
from controller.runtime.errors import Retry
from crds import kinds, names
from crds.objects import Deployment, Pod, Project, Run
from crds.reasons import RUN_ENDS, RunReason
from kube import errors

AT_ONCE = 8
REFUSED_AGAIN = 5.0
FORGOTTEN_AGAIN = 0.5
LIVE = "status.phase!=Succeeded,status.phase!=Failed"


@dataclass(frozen=True)
class AdmissionReconciler:
    """The reconcile of a project's queue of Runs."""

    actor: Actor
    config: Config

    async def reconcile(self, name: str) -> None:
        """Gives pods to the first of a project's waiting Runs. Raises what the apiserver refuses."""
        observer = Observer(self.actor)
        project = await observer.project(name)
        if project is None:
            return
        ready = {run.name: (run, found) async for run, found in self._ready(observer, project)}
        if not ready:
            return
        live, variables = await asyncio.gather(self._live(name, ready), observer.variables(name))
        limit = self.config.plans.of(project.plan).concurrent_runs
        decided = quota.admit([run for run, _ in ready.values()], live, limit)
        places = asyncio.Semaphore(AT_ONCE)

        async def give(run: Run) -> None:
            async with places:
                await self._give(run, ready[run.name][1], variables)

        async def queue(run: Run, decision: Decision) -> None:
            async with places:
                await self._perform(run, decision)

        def news(now: datetime) -> Iterator[tuple[Run, Decision]]:
            # Most wait as they did before.
            for run in decided.queued:
                wanted = status.queued(run, name, ready[run.name][1].deployment.name, limit, now)
                adopted = adoption(kinds.RUN, run, project)
                if adopted or difference(run.status, wanted):
                    yield run, Decision(status=wanted, after=adopted)

        # The pods first: whoever gets one waits for nobody's status.
        given = await asyncio.gather(*map(give, decided.admitted), return_exceptions=True)
        queued = await asyncio.gather(
            *(queue(*one) for one in news(datetime.now(UTC))), return_exceptions=True
        )
        for outcome in (*given, *queued):
            if isinstance(outcome, BaseException):
                raise outcome

    async def _live(self, project: str, ready: Mapping[str, object]) -> quota.Live:
        """The pods that take a place; whose they are is asked where one may be of a Run that waits."""
        selector = f"{names.LABEL_PROJECT}={project},{names.LABEL_COMPONENT}={names.COMPONENT_RUN}"
        found = await self.actor.kube.names(kinds.POD, selector, LIVE)
        if found.isdisjoint(ready):
            return quota.live(found, self._leaves)
        there: list[str] = []
        owners: set[str] = set()
        async for page in self.actor.kube.pages(kinds.POD, selector, LIVE):
            for raw in page.items:
                # One that was made before a restart is news to the Run that has it.
                self.actor.observer.saw(kinds.POD, raw)
                pod = Pod(raw)
                there.append(pod.name)
                owners |= pod.owner_uids
        return quota.live(there, self._leaves, owners)

    async def _ready(self, observer: Observer, project: Project) -> AsyncIterator[tuple[Run, resolve.Ready]]:
        for run in self._candidates(project.name):
            deployment = await observer.deployment(resolve.target(run, project))
            verdict = resolve.accept(run, project, deployment)
            if isinstance(verdict, resolve.Ready):
                yield run, verdict

    def _candidates(self, project: str) -> Iterator[Run]:
        for raw in self.actor.known.all(kinds.RUN):
            if raw["status"].get("phase") in RUN_ENDS:
                # Most of them, where many runs are short.
                continue
            run = Run(raw)
            if run.cancel or run.deleting or self._has_pod(run):
                continue
            if (run.project or self._project_of(run.deployment)) == project:
                yield run

    def _has_pod(self, run: Run) -> bool:
        raw = self.actor.known.get(kinds.POD, run.name)
        return pod_ref.uid(run) is not None or (raw is not None and pod_ref.ours(run, Pod(raw)))

    def _project_of(self, deployment: str | None) -> str | None:
        raw = self.actor.known.get(kinds.DEPLOYMENT, deployment) if deployment else None
        return Deployment(raw).project if raw else None

    def _leaves(self, name: str) -> bool:
        """Whether the Run has ended, or has reported and is about to be: its place is free."""
        raw = self.actor.known.get(kinds.RUN, name)
        return raw is not None and (Run(raw).ended or Run(raw).result is not None)

    async def _give(self, run: Run, ready: resolve.Ready, variables: frozenset[str]) -> None:
        now = datetime.now(UTC)
        if (lacking := resolve.missing_variable(ready, variables)) is not None:
            await self._fail(run, lacking.reason, lacking.message, now)
            return
        body = pod.build(run, ready.project, ready.deployment, variables, self.config, now.timestamp())
        timing = self.config.timing
        try:
            await self.actor.create(Create(kinds.POD, body), run.uid)
        except errors.Forbidden as error:
            # A quota, perhaps: that can pass.
            await self._refused(
                run, "PodRefused", f"the pod {run.name} was refused: {error.message}", timing.unschedulable
            )
        except Retry:
            await self._refused(
                run,
                "PodNameTaken",
                f"there is a pod {run.name} of something else; delete it with kubectl delete pod {run.name}",
                timing.start_timeout,
            )
        except errors.Invalid as error:
            await self._fail(run, RunReason.START_TIMEOUT, f"the pod cannot be made: {error.message}", now)
        else:
            self.actor.metrics.queued.observe(max(0.0, (now - run.created).total_seconds()))

    async def _fail(self, run: Run, reason: RunReason, message: str, now: datetime) -> None:
        await self._perform(run, ending(run, failed(reason, message), now))

    async def _refused(self, run: Run, reason: str, message: str, limit: float) -> None:
        """Says why there is no pod, and gives the Run up after `limit` seconds of it."""
        now = datetime.now(UTC)
        since = status.refused_since(run, now)
        if (now - since).total_seconds() >= limit:
            await self._fail(run, RunReason.START_TIMEOUT, f"{message} (for {limit:g} s)", now)
            return
        again = min(REFUSED_AGAIN, limit)
        wanted = status.refused(run, reason, message, now)
        note = (Note(reason, message, True),) if since == now else ()
        await self._perform(run, Decision(status=wanted, events=note, requeue_after=again))

    async def _perform(self, run: Run, decision: Decision) -> None:
        try:
            await self.actor.perform(kinds.RUN, run.raw, event_map.run(run.name), decision)
        except errors.Conflict:
            # It is forgotten then, and a watch that has shown the change already does not again.
            self.actor.queue.add(event_map.run(run.name), FORGOTTEN_AGAIN)
            raise
