"""When a build ended and how long it took. Pure. Called by `api.maintenance.accounting` and by `departure`."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from crds import conditions
from crds.times import parse_time

BUILT = ("active", "failed", "superseded")
"""What a Deployment is whose build has ended."""


@dataclass(frozen=True)
class EndedBuild:
    """A deployment that is still to be accounted; `building_at` None: nothing was built."""

    name: str
    building_at: datetime | None
    conditions: tuple[Mapping[str, Any], ...]


def ended_at(build: EndedBuild) -> datetime:
    """When a build ended: when the condition Built last changed, or else the last of all conditions."""
    built = conditions.find(build.conditions, conditions.BUILT)
    told = [built] if built else list(build.conditions)
    times = [parse_time(str(one["lastTransitionTime"])) for one in told if one.get("lastTransitionTime")]
    return max(times, default=build.building_at or _LONG_AGO)


def build_ms(build: EndedBuild, ended: datetime) -> int:
    """How long it was built, waiting not included; 0 where an image was there already."""
    begun = build.building_at
    return 0 if begun is None else max(0, (ended - begun) // timedelta(milliseconds=1))


_LONG_AGO = parse_time("1970-01-01T00:00:00Z")
