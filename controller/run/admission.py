"""The admission: the one place where run pods are made, serial per project.

A look at a project's queue: candidates from what is known, the project's live
pods from the apiserver (a linearizable list), a pod for each Run that a place is
free for. Called by `controller.reconciler` under the key `admission/<project>`.
"""

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from controller import triggers
from controller.apply import Actor
from controller.config import Config
from controller.decision import Create, Decision, Note
from controller.errors import Retry
from controller.owner import adoption
from controller.run import accept, admit, pod, status
from controller.run.decide import ending
from controller.run.end import failed
from controller.run.observe import Observer
from crds import errors, kinds, names
from crds.objects import Deployment, Pod, Project, Run
from crds.reasons import RunReason

AT_ONCE = 8
REFUSED_AGAIN = 10.0
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
        ready = {run.name: found async for run, found in self._ready(observer, project)}
        if not ready:
            return
        candidates = [run for run, _ in ready.values()]
        limit = self.config.plans.of(project.plan).concurrent_runs
        selector = f"{names.LABEL_PROJECT}={name},{names.LABEL_COMPONENT}={names.COMPONENT_RUN}"
        listing = await self.actor.kube.list(kinds.POD, selector, LIVE)
        pods = admit.live((Pod(raw) for raw in listing.items), self._ended)
        decided = admit.admit(candidates, pods, limit)
        names_needed = any(accept.needs_variables(found) for _, found in ready.values())
        variables = await observer.variables(name) if names_needed else frozenset()
        places = asyncio.Semaphore(AT_ONCE)

        async def give(run: Run) -> None:
            async with places:
                try:
                    await self._give(run, ready[run.name][1], variables)
                except errors.Conflict:
                    # It is forgotten then, and a watch that has shown the change already does not again.
                    self.actor.queue.add(triggers.run(run.name), FORGOTTEN_AGAIN)
                    raise

        outcomes = await asyncio.gather(
            *(give(run) for run in (*decided.adopted, *decided.admitted)), return_exceptions=True
        )
        for run in decided.queued:
            found = ready[run.name][1]
            wanted = status.queued(run, name, found.deployment.name, limit, datetime.now(UTC))
            decision = Decision(status=wanted, after=adoption(kinds.RUN, run, project))
            await self.actor.perform(kinds.RUN, run.raw, triggers.run(run.name), decision)
        for outcome in outcomes:
            if isinstance(outcome, BaseException):
                raise outcome

    async def _ready(self, observer: Observer, project: Project) -> Any:
        for run in self._candidates(project.name):
            deployment = await observer.deployment(accept.target(run, project))
            verdict = accept.accept(run, project, deployment)
            if isinstance(verdict, accept.Ready):
                yield run, (run, verdict)

    def _candidates(self, project: str) -> Iterator[Run]:
        for raw in self.actor.known.all(kinds.RUN):
            run = Run(raw)
            if run.ended or run.pod or run.cancel or run.deleting:
                continue
            if (run.project or self._project_of(run.deployment)) == project:
                yield run

    def _project_of(self, deployment: str | None) -> str | None:
        raw = self.actor.known.get(kinds.DEPLOYMENT, deployment) if deployment else None
        return Deployment(raw).project if raw else None

    def _ended(self, name: str) -> bool:
        raw = self.actor.known.get(kinds.RUN, name)
        return raw is not None and Run(raw).ended

    async def _give(self, run: Run, ready: accept.Ready, variables: frozenset[str]) -> None:
        project, deployment = ready.project, ready.deployment
        now = datetime.now(UTC)
        if (refused := accept.missing_variable(ready, variables)) is not None:
            await self._fail(run, refused.reason, refused.message, now)
            return
        body = pod.build(run, project, deployment, variables, self.config, now.timestamp())
        try:
            made = await self.actor.create(Create(kinds.POD, body), run.uid)
        except errors.Forbidden as error:
            await self._refused(run, error, now)
            return
        except errors.Invalid as error:
            await self._fail(run, RunReason.START_TIMEOUT, f"the pod cannot be made: {error.message}", now)
            return
        wanted = status.starting(run, project.name, _deployment_of(made, deployment), made, now)
        await self.actor.perform(kinds.RUN, run.raw, triggers.run(run.name), Decision(status=wanted))
        self.actor.metrics.queued.observe(max(0.0, (now - run.created).total_seconds()))

    async def _fail(self, run: Run, reason: RunReason, message: str, now: datetime) -> None:
        decision = ending(run, failed(reason, message), now)
        await self.actor.perform(kinds.RUN, run.raw, triggers.run(run.name), decision)

    async def _refused(self, run: Run, error: errors.Forbidden, now: datetime) -> None:
        """Admission control refused the pod, perhaps for a quota: that can pass, within limits."""
        if (now - run.created).total_seconds() > self.config.timing.unschedulable:
            message = f"the pod was refused for too long: {error.message}"
            await self._fail(run, RunReason.START_TIMEOUT, message, now)
            return
        message = f"The pod was refused: {error.message}"
        decision = Decision(
            status=status.pending(run, "PodRefused", message, now),
            events=(Note("PodRefused", error.message, True),),
            requeue_after=REFUSED_AGAIN,
        )
        await self.actor.perform(kinds.RUN, run.raw, triggers.run(run.name), decision)
        raise Retry(message)


def _deployment_of(made: dict[str, Any], decided: Deployment) -> str:
    """The Deployment that a pod was made for, which counts if it was made before a crash."""
    labels = made["metadata"].get("labels") or {}
    return str(labels.get(names.LABEL_DEPLOYMENT) or decided.name)
