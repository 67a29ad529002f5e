"""Schedules of a Project as JSON, and changed lists of them. Pure. Called by the routes of schedules."""

from collections.abc import Mapping, Sequence
from typing import Any

from api.http import casing
from api.v1.schedules.schema import SPEC
from crds import names
from crds.schedules.schedule import Schedule

Spec = Mapping[str, Any]


def items(spec: Spec, status: Spec) -> list[dict[str, Any]]:
    """Return the schedules of a Project in their order."""
    entries = {str(entry["name"]): entry for entry in status.get("schedules") or ()}
    return [item(raw, entries.get(str(raw["name"]), {})) for raw in spec.get("schedules") or ()]


def item(raw: Spec, entry: Spec) -> dict[str, Any]:
    """Return a schedule with its state; `entry` of an earlier expression has no next time."""
    schedule = Schedule(raw)
    current = entry.get("expression") == schedule.expression
    return {
        "name": schedule.name,
        "cron": raw["cron"],
        "time_zone": schedule.time_zone,
        "input": raw.get("input"),
        "entrypoint": raw.get("entrypoint"),
        "labels": raw.get("labels"),
        "concurrency_policy": schedule.policy,
        "starting_deadline": raw.get("startingDeadline"),
        "suspend": schedule.suspended,
        "last_time": entry.get("lastTime"),
        "last_run_id": names.id_of(entry["lastRun"]) if "lastRun" in entry else None,
        "next_time": entry.get("nextTime") if current else None,
        "message": entry.get("message"),
    }


def to_spec(name: str, body: Spec) -> dict[str, Any]:
    """Return the entry of `spec.schedules` for a validated body."""
    converted: list[dict[str, Any]] = casing.to_camel(SPEC, [{"name": name, **body}])
    return converted[0]


def with_schedule(schedules: Sequence[Spec], changed: Spec) -> list[Spec]:
    """Return the list with one schedule replaced, or added at the end."""
    if any(one["name"] == changed["name"] for one in schedules):
        return [changed if one["name"] == changed["name"] else one for one in schedules]
    return [*schedules, changed]


def without(schedules: Sequence[Spec], name: str) -> list[Spec]:
    """Return the list without the schedule of that name."""
    return [one for one in schedules if one["name"] != name]
