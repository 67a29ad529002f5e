"""End and duration of a build. Pure. Called by `api.store.accounting` and `delete_deployment`."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from crds import conditions
from crds.times import parse_time

FINISHED_PHASES = ("active", "failed", "superseded")
"""Phases of a Deployment with a finished build."""


@dataclass(frozen=True)
class EndedBuild:
    """A deployment to be accounted; `building_at` None: it was not built."""

    name: str
    building_at: datetime | None
    conditions: tuple[Mapping[str, Any], ...]


def ended_at(build: EndedBuild) -> datetime:
    """Return the end of a build: the last change of the condition Built, or else of any condition."""
    built = conditions.find(build.conditions, conditions.BUILT)
    relevant = [built] if built else list(build.conditions)
    times = [
        parse_time(str(condition["lastTransitionTime"]))
        for condition in relevant
        if condition.get("lastTransitionTime")
    ]
    return max(times, default=build.building_at or _LONG_AGO)


def build_ms(build: EndedBuild, ended: datetime) -> int:
    """Return the duration of a build in ms, without the time in the queue; 0 if the image existed already."""
    started = build.building_at
    return 0 if started is None else max(0, (ended - started) // timedelta(milliseconds=1))


_LONG_AGO = parse_time("1970-01-01T00:00:00Z")
