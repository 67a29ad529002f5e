"""Reconcile of a Project's schedules, serial per Project. Called by `controller.runtime.worker`.

Between two ticks a Project costs nothing: its key waits in the queue's heap until the first tick of its
schedules. The Run of a tick is created before the status records it: after a crash between the two, the same
tick gives the same name, and the existing Run counts as created.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from controller.config import ControllerConfig
from controller.runtime import event_map
from controller.runtime.apply import Applier
from controller.runtime.decision import Create, Decision, ObjectEvent, Patch
from controller.runtime.errors import Retry
from controller.runtime.workqueue import ReconcileKey
from controller.schedule.decide import Entry, ScheduleContext, ScheduleDecision, decide, is_due
from controller.schedule.run_object import run_object
from crds import kinds, names
from crds.objects import Project, Run
from crds.schedules.schedule import Schedule
from kube import errors

REFUSED = "ScheduleRefused"
REFUSED_RETRY_SECONDS = 30.0
MAX_SLEEP_SECONDS = 3600.0
"""A step of the machine's clock is noticed after this time at the latest."""


@dataclass(frozen=True)
class ScheduleReconciler:
    """Reconciler of the schedules of Projects. `is_synced`: whether the cache has all unfinished Runs."""

    applier: Applier
    config: ControllerConfig
    is_synced: Callable[[], bool]

    async def reconcile(self, name: str) -> None:
        """Start the due Runs of a Project's schedules. Raises `kube.errors`; the worker then retries."""
        key = event_map.schedules(name)
        raw = await self.applier.get(kinds.PROJECT, name, key)
        project = Project(raw) if raw is not None else None
        if raw is None or project is None or project.deleting or not _has_schedules(project):
            self.applier.queues.remove(key)
            return
        if not self.is_synced():
            raise Retry("the unfinished Runs are not listed yet")
        now = datetime.now(UTC)
        entries = {str(entry["name"]): entry for entry in project.status.get("schedules") or ()}
        schedules = [
            (one, entries.get(one.name, {})) for one in map(Schedule, project.spec.get("schedules") or ())
        ]
        due = any(is_due(schedule, before, now) for schedule, before in schedules)
        contexts = self._contexts(project) if due else {}
        decisions = []
        for schedule, before in schedules:
            context = contexts.get(schedule.name, contexts.get("", ScheduleContext()))
            decision = decide(project.uid, schedule, before, now, context)
            decisions.append(await self._start(project, schedule, before, decision, now))
        await self.applier.apply(kinds.PROJECT, raw, key, await self._combine(decisions, now, key))
        for decision in decisions:
            for outcome, count in decision.outcomes:
                self.applier.metrics.schedule_ticks.labels(outcome).inc(count)

    async def _start(
        self, project: Project, schedule: Schedule, before: Entry, decision: ScheduleDecision, now: datetime
    ) -> ScheduleDecision:
        """Create the Run of a due tick; return the decision that reports what the apiserver refused."""
        if decision.tick is None:
            return decision
        try:
            await self.applier.create(
                Create(kinds.RUN, run_object(project, schedule, decision.tick)), project.uid
            )
        except (errors.Invalid, errors.KubeForbidden, Retry) as error:
            return _refused(schedule, before, decision, error)
        delay = (now - decision.tick).total_seconds()
        self.applier.metrics.schedule_delay.observe(max(0.0, delay))
        return decision

    def _contexts(self, project: Project) -> dict[str, ScheduleContext]:
        """Return the unfinished Runs by schedule, and whether the queue is full; "" stands for no Run."""
        unfinished: dict[str, list[str]] = {"": []}
        queued = 0
        for run in map(Run, self.applier.cache.of_project(kinds.RUN, project.name)):
            if run.ended:
                continue
            queued += run.claim is None
            schedule = run.labels.get(names.LABEL_SCHEDULE)
            if schedule and not run.deleting:
                unfinished.setdefault(schedule, []).append(run.name)
        full = queued >= self.config.limits_of(project).queue
        return {schedule: ScheduleContext(tuple(sorted(runs)), full) for schedule, runs in unfinished.items()}

    async def _combine(self, decisions: list[ScheduleDecision], now: datetime, key: ReconcileKey) -> Decision:
        waits = [(one.wake - now).total_seconds() for one in decisions if one.wake is not None]
        waits += [one.retry_seconds for one in decisions if one.retry_seconds is not None]
        return Decision(
            before=tuple([patch for one in decisions for patch in await self._cancellations(one, key)]),
            status={"schedules": [one.entry for one in decisions]},
            events=tuple(event for one in decisions for event in one.events),
            requeue_after=max(0.0, min(MAX_SLEEP_SECONDS, *waits)) if waits else None,
        )

    async def _cancellations(self, decision: ScheduleDecision, key: ReconcileKey) -> list[Patch]:
        # A Run whose patch conflicted is read from the apiserver.
        found = [await self.applier.get(kinds.RUN, name, key) for name in decision.cancel]
        runs = [Run(raw) for raw in found if raw is not None]
        body: Mapping[str, Any] = {"spec": {"cancel": True}}
        return [
            Patch(kinds.RUN, run.name, body, run.resource_version, None)
            for run in runs
            if not run.ended and not run.cancel
        ]


def _has_schedules(project: Project) -> bool:
    return bool(project.spec.get("schedules") or project.status.get("schedules"))


def _refused(
    schedule: Schedule, before: Entry, decision: ScheduleDecision, error: Exception
) -> ScheduleDecision:
    """Return the decision that leaves the tick unhandled and tries again."""
    text = error.message if isinstance(error, errors.KubeError) else str(error)
    message = f"schedule {schedule.name}: no run could be created: {text}"[:1000]
    entry = {key: before[key] for key in ("lastTime", "lastRun", "nextTime", "expression") if key in before}
    reported = () if before.get("message") == message else (ObjectEvent(REFUSED, message, True),)
    return replace(
        decision,
        entry={"name": schedule.name, **entry, "message": message},
        tick=None,
        cancel=(),
        wake=None,
        retry_seconds=REFUSED_RETRY_SECONDS,
        events=reported,
        outcomes=(("refused", 1),),
    )
