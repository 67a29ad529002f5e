"""Decision about one schedule at one moment, with the semantics of a CronJob. Pure.

`status.schedules[].nextTime` is the first tick that is not handled. Of several ticks that have passed,
only the newest starts a Run; the others are reported as missed. A tick is handled once its Run exists,
its deadline has passed, or the queue is full; with Forbid it waits for the previous Run until a newer
tick takes its place.
Called by `controller.schedule.reconcile`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from controller.runtime.decision import ObjectEvent
from controller.schedule.run_object import run_name
from crds import durations
from crds.conditions import SCHEDULE_INVALID
from crds.schedules.cron import MissedTicks
from crds.schedules.schedule import FORBID, REPLACE, Schedule
from crds.times import format_second, parse_time

MISSED = "ScheduleMissed"
WAITING = "ScheduleWaiting"
QUEUE_FULL = "ScheduleQueueFull"
MAX_CLOCK_ERROR = timedelta(hours=1)
"""A clock that was ahead by less has handled the next ticks: they are not handled again."""

Entry = Mapping[str, Any]


@dataclass(frozen=True)
class ScheduleContext:
    """What else decides: the unfinished Runs of the schedule, and whether the project's queue is full."""

    unfinished: Sequence[str] = ()
    queue_full: bool = False


@dataclass(frozen=True)
class ScheduleDecision:
    """The entry of the status; the tick to start, if one is; Runs to cancel; when to decide again."""

    entry: dict[str, Any]
    tick: datetime | None = None
    cancel: tuple[str, ...] = ()
    wake: datetime | None = None
    retry_seconds: float | None = None
    events: tuple[ObjectEvent, ...] = ()
    outcomes: tuple[tuple[str, int], ...] = ()
    """Ticks by what became of them, for the metric."""


def first_tick(schedule: Schedule, before: Entry, now: datetime) -> datetime | None:
    """Return the first tick that is not handled; a new or changed schedule begins now. Raises CronInvalid.

    So does one whose recorded tick is that of a clock which was ahead: it would start nothing until then.
    """
    ticks = schedule.ticks()
    if before.get("expression") == schedule.expression and before.get("nextTime"):
        recorded, latest = parse_time(str(before["nextTime"])), now + MAX_CLOCK_ERROR
        if recorded <= latest or recorded == ticks.next_after(latest):
            return recorded
    return ticks.next_after(now)


def is_due(schedule: Schedule, before: Entry, now: datetime) -> bool:
    """Return whether a tick has to be handled; only then does the context matter."""
    if schedule.suspended or schedule.problem is not None:
        return False
    first = first_tick(schedule, before, now)
    return first is not None and first <= now


def decide(
    project_uid: str, schedule: Schedule, before: Entry, now: datetime, context: ScheduleContext
) -> ScheduleDecision:
    """Return the decision about a schedule with the status entry `before`."""
    entry = {"name": schedule.name, **{key: before[key] for key in ("lastTime", "lastRun") if key in before}}
    if (problem := schedule.problem) is not None:
        events = _changed(before, SCHEDULE_INVALID, problem)
        return ScheduleDecision({**entry, "message": problem}, events=events)
    if (first := first_tick(schedule, before, now)) is None:
        return ScheduleDecision(entry)
    entry |= {"expression": schedule.expression, "nextTime": format_second(first)}
    if schedule.suspended:
        return ScheduleDecision(entry)
    missed = schedule.ticks().missed(first, now)
    if missed is None:
        is_same = before.get("expression") == schedule.expression
        kept = {"message": before["message"]} if is_same and "message" in before else {}
        return ScheduleDecision({**entry, **kept}, wake=first)
    return _decide_due(project_uid, schedule, before, entry, missed, now, context)


def _decide_due(
    project_uid: str,
    schedule: Schedule,
    before: Entry,
    entry: dict[str, Any],
    missed: MissedTicks,
    now: datetime,
    context: ScheduleContext,
) -> ScheduleDecision:
    tick, earlier = missed.newest, missed.count - 1
    following = schedule.ticks().next_after(tick)
    handled = {**entry, "nextTime": format_second(following)} if following else _without_next(entry)
    name = run_name(project_uid, schedule.name, tick)
    unfinished = tuple(run for run in context.unfinished if run != name)
    started_before = name in context.unfinished
    deadline = schedule.deadline_seconds
    if deadline is not None and (now - tick).total_seconds() > deadline and not started_before:
        message = (
            f"schedule {schedule.name}: {_times(missed, missed.count)} missed, the newest at "
            f"{format_second(tick)}: no run could start within startingDeadline, {durations.text(deadline)}"
        )
        return ScheduleDecision(
            {**handled, "message": message},
            wake=following,
            events=(ObjectEvent(MISSED, message, True),),
            outcomes=(("missed", missed.count),),
        )
    late = _earlier_missed(schedule, missed, earlier)
    outcomes = (("missed", earlier),) if earlier else ()
    if schedule.policy == FORBID and unfinished:
        message = (
            f"schedule {schedule.name}: the run of {format_second(tick)} waits until {unfinished[0]} ends"
        )
        return ScheduleDecision(
            {**entry, "nextTime": format_second(tick), "message": message},
            wake=following,
            events=(*late, *_changed(before, WAITING, message)),
            outcomes=outcomes,
        )
    if context.queue_full and not started_before:
        message = (
            f"schedule {schedule.name}: no run for {format_second(tick)}: the project's queue is full; "
            "wait until runs have started, or ask the operator for a larger plan"
        )
        events = (*late, ObjectEvent(QUEUE_FULL, message, True))
        return ScheduleDecision(
            {**handled, "message": message},
            wake=following,
            events=events,
            outcomes=(*outcomes, ("queue_full", 1)),
        )
    return ScheduleDecision(
        {**handled, "lastTime": format_second(tick), "lastRun": name},
        tick=tick,
        cancel=unfinished if schedule.policy == REPLACE else (),
        wake=following,
        events=late,
        outcomes=(*outcomes, ("started", 1)),
    )


def _without_next(entry: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in entry.items() if key != "nextTime"}


def _earlier_missed(schedule: Schedule, missed: MissedTicks, earlier: int) -> tuple[ObjectEvent, ...]:
    """Return the Event about the ticks before the newest one; none if there are none."""
    if not earlier:
        return ()
    message = (
        f"schedule {schedule.name}: {_times(missed, earlier)} before {format_second(missed.newest)} missed; "
        "only the newest missed time starts a run"
    )
    return (ObjectEvent(MISSED, message, True),)


def _times(missed: MissedTicks, count: int) -> str:
    return f"{'more than ' if missed.more else ''}{count} {'time' if count == 1 else 'times'}"


def _changed(before: Entry, reason: str, message: str) -> tuple[ObjectEvent, ...]:
    """Return an Event unless the status has the message already."""
    return () if before.get("message") == message else (ObjectEvent(reason, message, True),)
