"""The controller's present state in figures, read at each scrape so that they cannot drift.

Called by `controller.process`. Labels hold kinds, phases and queues, never names.
"""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime

from controller.observability.health import Vitals
from controller.observability.metrics import Gauges, Reading
from controller.runtime.cache import Known
from controller.runtime.kopf_watch import WATCHED
from controller.runtime.queues import Lanes
from crds import conditions, kinds
from crds.kinds import Kind
from crds.objects import Project
from crds.reasons import DeploymentPhase, RunPhase
from crds.times import parse_time

_UNFINISHED: tuple[tuple[Kind, tuple[str, ...]], ...] = (
    (kinds.DEPLOYMENT, (DeploymentPhase.PENDING, DeploymentPhase.BUILDING)),
    (kinds.RUN, (RunPhase.PENDING, RunPhase.RUNNING)),
)
"""What is on its way to an end, by kind."""


def add_gauges(gauges: Gauges, known: Known, lanes: Lanes, vitals: Callable[[], Vitals]) -> None:
    """Adds all of them; `vitals` is what the probe looks at."""
    queues = {"main": lanes.main, "sources": lanes.sources, "reports": lanes.reports}
    gauges.add(
        "crewyard_queue_depth",
        "Keys that are ready.",
        ("queue",),
        lambda: [Reading((name,), queue.depth) for name, queue in queues.items()],
    )
    gauges.add(
        "crewyard_queue_oldest_seconds",
        "For how long the oldest ready key has been waiting.",
        ("queue",),
        lambda: [Reading((name,), queue.oldest_ready()) for name, queue in queues.items()],
    )
    gauges.add(
        "crewyard_known_objects",
        "Objects remembered.",
        ("kind",),
        lambda: [Reading((kind.plural,), known.count(kind)) for kind in (*kinds.OWN, kinds.POD)],
    )
    gauges.add(
        "crewyard_resync_age_seconds",
        "How long ago everything was last listed; since the start where it never was.",
        (),
        lambda: [Reading((), _resync_age(vitals()))],
    )
    gauges.add("crewyard_watches", "Whether a kind is watched.", ("kind",), lambda: _watches(vitals()))
    gauges.add(
        "crewyard_unfinished",
        "Deployments and Runs that are on their way to an end.",
        ("kind", "phase"),
        lambda: [Reading(labels, len(since)) for labels, since in unfinished(known)],
    )
    gauges.add(
        "crewyard_unfinished_oldest_seconds",
        "How long ago the oldest of them was created, of running ones: started; 0 where there is none.",
        ("kind", "phase"),
        lambda: [Reading(labels, _age(since, datetime.now(UTC))) for labels, since in unfinished(known)],
    )
    gauges.add(
        "crewyard_sources",
        "Projects with a git source that is looked at, by what the last look found.",
        ("state",),
        lambda: [Reading((state,), count) for state, count in sources(known).items()],
    )


def unfinished(known: Known) -> Iterator[tuple[tuple[str, str], list[str]]]:
    """Kind and phase with the times, as the apiserver writes them, since when each object is on its way.

    That is its creation; of a running Run its start, since it may have been queued for as long as it likes.
    """
    for kind, phases in _UNFINISHED:
        since: dict[str, list[str]] = {phase: [] for phase in phases}
        for raw in known.all(kind):
            status = raw.get("status") or {}
            # Without a status nobody has looked at it yet.
            phase = status.get("phase") or phases[0]
            started = status.get("startTime") if phase == RunPhase.RUNNING else None
            if phase in since:
                since[phase].append(started or raw["metadata"].get("creationTimestamp") or "")
        for phase in phases:
            yield (kind.plural, phase.lower()), since[phase]


def sources(known: Known) -> dict[str, int]:
    """How many git sources are in each state: a count of Projects, however often each is looked at."""
    found = dict.fromkeys(("resolved", "unreachable", "refused", "new"), 0)
    for raw in known.all(kinds.PROJECT):
        project = Project(raw)
        if project.git is None or project.git.get("suspend"):
            continue
        seen = {one["type"] for one in project.conditions if one["status"] == "True"}
        if conditions.SOURCE_RESOLVED in seen:
            found["resolved"] += 1
        elif conditions.STALLED in seen:
            found["refused"] += 1
        else:
            found["unreachable" if conditions.RECONCILING in seen else "new"] += 1
    return found


def _age(since: list[str], now: datetime) -> float:
    # Written in UTC and of one length: the least text is the earliest time.
    first = min(filter(None, since), default="")
    return max(0.0, (now - parse_time(first)).total_seconds()) if first else 0.0


def _resync_age(vitals: Vitals) -> float:
    return vitals.uptime if vitals.resync_age is None else vitals.resync_age


def _watches(vitals: Vitals) -> list[Reading]:
    return [Reading((kind.plural,), float(kind.plural not in vitals.missing_watchers)) for kind in WATCHED]
