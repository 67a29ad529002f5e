"""Gauges of the controller's current state, read at each scrape to avoid drift.

Called by `controller.process`. Labels hold kinds, phases and queues, never names.
"""

from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from itertools import chain
from typing import Any

from controller.observability.health import HealthReadings
from controller.observability.metrics import Gauges, Sample
from controller.project.status import ABOVE_CEILING, EGRESS_REFUSED
from controller.run.pod import answer_seconds
from controller.runtime.cache import ObjectCache
from controller.runtime.kopf_watch import WATCHED
from controller.runtime.queues import Queues
from crds import conditions, kinds
from crds.kinds import Kind
from crds.objects import Pod, Project, Run
from crds.reasons import DeploymentPhase, RunPhase
from crds.times import format_second, parse_time

_UNFINISHED: tuple[tuple[Kind, tuple[str, ...]], ...] = (
    (kinds.DEPLOYMENT, (DeploymentPhase.PENDING, DeploymentPhase.BUILDING)),
    (kinds.RUN, (RunPhase.PENDING, RunPhase.RUNNING)),
)
"""Unfinished phases by kind."""


def add_gauges(
    gauges: Gauges,
    caches: Sequence[ObjectCache],
    queues: Sequence[Queues],
    readings: Callable[[], HealthReadings],
) -> None:
    """Add all gauges, of the caches and queues of all namespaces; `readings` is the state of the probe."""
    work_queues = {
        "main": [each.main for each in queues],
        "sources": [each.sources for each in queues],
        "reports": [each.reports for each in queues],
        "attestations": [each.attestations for each in queues],
    }
    gauges.add(
        "crewyard_queue_depth",
        "Ready keys.",
        ("queue",),
        lambda: [Sample((name,), sum(one.depth for one in alike)) for name, alike in work_queues.items()],
    )
    gauges.add(
        "crewyard_queue_oldest_seconds",
        "Seconds since the oldest ready key became ready.",
        ("queue",),
        lambda: [
            Sample((name,), max(one.oldest_ready() for one in alike)) for name, alike in work_queues.items()
        ],
    )
    gauges.add(
        "crewyard_known_objects",
        "Cached objects.",
        ("kind",),
        lambda: [
            Sample((kind.plural,), sum(cache.count(kind) for cache in caches))
            for kind in (*kinds.OWN_KINDS, kinds.POD)
        ],
    )
    gauges.add(
        "crewyard_resync_age_seconds",
        "Seconds since the last complete resync, or since the start before the first.",
        (),
        lambda: [Sample((), _resync_age(readings()))],
    )
    gauges.add(
        "crewyard_controller_active",
        "1 if this controller leads, 0 for a standby.",
        (),
        lambda: [Sample((), float(readings().active))],
    )
    gauges.add("crewyard_watches", "Whether a kind is watched.", ("kind",), lambda: _watches(readings()))
    gauges.add(
        "crewyard_unfinished",
        "Unfinished Deployments and Runs.",
        ("kind", "phase"),
        lambda: [Sample(labels, len(since)) for labels, since in unfinished(caches)],
    )
    gauges.add(
        "crewyard_unfinished_oldest_seconds",
        "Seconds since the oldest unfinished object was created (running: started); 0 if there is none.",
        ("kind", "phase"),
        lambda: [Sample(labels, _age(since, datetime.now(UTC))) for labels, since in unfinished(caches)],
    )
    gauges.add(
        "crewyard_warm_pods",
        "Pods that wait for a run, by the state of their container.",
        ("state",),
        lambda: [Sample((state,), count) for state, count in warm_pods(caches).items()],
    )
    gauges.add(
        "crewyard_sources",
        "Projects with a polled git source, by the result of the last poll.",
        ("state",),
        lambda: [Sample((state,), count) for state, count in sources(caches).items()],
    )
    gauges.add(
        "crewyard_limited_projects",
        "Projects that get less than their spec asks for, by the reason of their condition.",
        ("reason",),
        lambda: [Sample((reason,), count) for reason, count in limited_projects(caches).items()],
    )


def unfinished(caches: Sequence[ObjectCache]) -> Iterator[tuple[tuple[str, str], list[str]]]:
    """Yield kind and phase with the start times of unfinished objects, in the apiserver's format.

    The start is the creation; for a running Run it is its start time, since it may have been queued for long.
    """
    for kind, phases in _UNFINISHED:
        since: dict[str, list[str]] = {phase: [] for phase in phases}
        for cache in caches:
            for raw in cache.all(kind):
                status = raw.get("status") or {}
                # No status: not reconciled yet.
                phase = status.get("phase") or phases[0]
                started = _run_start(Run(raw), cache) if phase == RunPhase.RUNNING else None
                if phase in since:
                    since[phase].append(started or raw["metadata"].get("creationTimestamp") or "")
        for phase in phases:
            yield (kind.plural, phase.lower()), since[phase]


def _run_start(run: Run, cache: ObjectCache) -> str | None:
    """Return when a running Run started, later by the time for answers of a person if it has asked."""
    started: str | None = run.status.get("startTime")
    pods = cache.pods_of_run(run.name) if started and run.has_asked else []
    seconds = answer_seconds(Pod(pods[0])) if pods else 0
    if started is None or not seconds:
        return started
    return format_second(parse_time(started) + timedelta(seconds=seconds))


def warm_pods(caches: Sequence[ObjectCache]) -> dict[str, int]:
    """Count the pods that wait for a run: running, starting, or ended without one."""
    counts = dict.fromkeys(("running", "starting", "ended"), 0)
    for raw in chain.from_iterable(cache.warm_pods() for cache in caches):
        pod = Pod(raw)
        if pod.run is None:
            counts["ended" if pod.finished else "running" if pod.phase == "Running" else "starting"] += 1
    return counts


def sources(caches: Sequence[ObjectCache]) -> dict[str, int]:
    """Count Projects with a git source by state."""
    counts = dict.fromkeys(("resolved", "unreachable", "refused", "new"), 0)
    for raw in _all(caches, kinds.PROJECT):
        project = Project(raw)
        if project.git is None or project.git.get("suspend"):
            continue
        true_types = {one["type"] for one in project.conditions if one["status"] == "True"}
        if conditions.SOURCE_RESOLVED in true_types:
            counts["resolved"] += 1
        elif conditions.STALLED in true_types:
            counts["refused"] += 1
        else:
            counts["unreachable" if conditions.RECONCILING in true_types else "new"] += 1
    return counts


def limited_projects(caches: Sequence[ObjectCache]) -> dict[str, int]:
    """Count Projects with the condition Limited by its reason."""
    counts = dict.fromkeys((ABOVE_CEILING, EGRESS_REFUSED), 0)
    for raw in _all(caches, kinds.PROJECT):
        reason = (conditions.find(Project(raw).conditions, conditions.LIMITED) or {}).get("reason")
        if reason in counts:
            counts[reason] += 1
    return counts


def _all(caches: Sequence[ObjectCache], kind: Kind) -> Iterator[dict[str, Any]]:
    return chain.from_iterable(cache.all(kind) for cache in caches)


def _age(since: list[str], now: datetime) -> float:
    # UTC and of equal length: the smallest text is the earliest time.
    first = min(filter(None, since), default="")
    return max(0.0, (now - parse_time(first)).total_seconds()) if first else 0.0


def _resync_age(readings: HealthReadings) -> float:
    return readings.uptime if readings.resync_age is None else readings.resync_age


def _watches(readings: HealthReadings) -> list[Sample]:
    if not readings.active:
        return []
    return [Sample((kind.plural,), float(kind.plural not in readings.missing_watchers)) for kind in WATCHED]
