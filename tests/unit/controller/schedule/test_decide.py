"""One schedule at one moment: what starts, what is missed, what waits."""

from datetime import UTC, datetime, timedelta

import pytest

from controller.schedule.decide import ScheduleContext, decide, is_due
from controller.schedule.run_object import run_name, run_object
from crds.objects import Project
from crds.schedules.schedule import Schedule
from crds.times import format_second

SEVEN = datetime(2026, 11, 23, 7, tzinfo=UTC)
NONE = ScheduleContext()


def schedule(**more):
    return Schedule({"name": "nightly", "cron": "0 * * * *", **more})


def entry(next_time=SEVEN, **more):
    return {"name": "nightly", "expression": "0 * * * * UTC", "nextTime": format_second(next_time), **more}


def name(tick):
    return run_name("uid-demo", "nightly", tick)


def ask(one, before, now, around=NONE):
    return decide("uid-demo", one, before, now, around)


def reasons(decision):
    return [event.reason for event in decision.events]


def test_a_new_schedule_begins_with_the_next_tick():
    decision = ask(schedule(), {}, SEVEN - timedelta(minutes=1))
    assert decision.tick is None
    assert decision.wake == SEVEN
    assert decision.entry == entry()


def test_nothing_is_due_before_the_tick():
    now = SEVEN - timedelta(milliseconds=1)
    assert not is_due(schedule(), entry(), now)
    assert ask(schedule(), entry(), now).entry == entry()


@pytest.mark.parametrize(
    ("ahead", "first"),
    [(timedelta(minutes=30), 8), (timedelta(hours=1), 8), (timedelta(days=1), 7), (timedelta(days=365), 7)],
)
def test_a_tick_recorded_by_a_clock_that_was_ahead_is_dropped(ahead, first):
    """A clock that was ahead by up to an hour has handled the tick of now."""
    now = SEVEN - timedelta(minutes=5)
    recorded = schedule().ticks().next_after(now + ahead)
    assert ask(schedule(), entry(recorded), now).entry == entry(SEVEN.replace(hour=first))


def test_a_due_tick_starts_one_run():
    decision = ask(schedule(), entry(), SEVEN)
    assert decision.tick == SEVEN
    eight = SEVEN + timedelta(hours=1)
    assert decision.entry == entry(eight, lastTime="2026-11-23T07:00:00Z", lastRun=name(SEVEN))
    assert decision.wake == eight
    assert decision.events == ()
    assert decision.outcomes == (("started", 1),)


def test_deciding_again_before_the_status_is_written_gives_the_same_run():
    later = SEVEN + timedelta(minutes=20)
    first, second = ask(schedule(), entry(), SEVEN), ask(schedule(), entry(), later)
    assert first.entry == second.entry
    around = ScheduleContext((name(SEVEN),), queue_full=True)
    for policy in ("Forbid", "Replace", "Allow"):
        again = ask(schedule(concurrencyPolicy=policy, startingDeadline="5m"), entry(), later, around)
        assert (again.entry["lastRun"], again.cancel) == (name(SEVEN), ())


def test_of_several_missed_ticks_the_newest_starts():
    now = SEVEN + timedelta(hours=3, minutes=5)
    decision = ask(schedule(), entry(), now)
    assert decision.tick == SEVEN + timedelta(hours=3)
    assert decision.wake == SEVEN + timedelta(hours=4)
    assert reasons(decision) == ["ScheduleMissed"]
    assert "3 times before 2026-11-23T10:00:00Z missed" in decision.events[0].message
    assert decision.outcomes == (("missed", 3), ("started", 1))


def test_more_than_a_hundred_missed_ticks_are_not_counted():
    decision = ask(schedule(), entry(), SEVEN + timedelta(days=30))
    assert decision.tick == SEVEN + timedelta(days=30)
    assert "more than 99 times before" in decision.events[0].message


@pytest.mark.parametrize(("late", "starts"), [(0, True), (300, True), (301, False)])
def test_a_tick_beyond_its_deadline_is_missed_with_an_event(late, starts):
    decision = ask(schedule(startingDeadline="5m"), entry(), SEVEN + timedelta(seconds=late))
    assert (decision.tick == SEVEN) is starts
    assert reasons(decision) == ([] if starts else ["ScheduleMissed"])
    assert decision.entry["nextTime"] == "2026-11-23T08:00:00Z"
    assert ("lastRun" in decision.entry) is starts
    if not starts:
        assert "startingDeadline, 5m" in decision.entry["message"]


def test_the_message_of_a_missed_tick_stays_until_a_run_starts():
    missed = ask(schedule(startingDeadline="5m"), entry(), SEVEN + timedelta(minutes=6))
    later = ask(schedule(startingDeadline="5m"), missed.entry, SEVEN + timedelta(minutes=30))
    assert later.entry == missed.entry
    assert later.events == ()
    started = ask(schedule(startingDeadline="5m"), missed.entry, SEVEN + timedelta(hours=1))
    assert "message" not in started.entry


def test_forbid_waits_for_the_previous_run_and_then_starts():
    one = schedule(concurrencyPolicy="Forbid")
    waiting = ask(one, entry(), SEVEN, ScheduleContext(("run-before",)))
    assert waiting.tick is None
    assert reasons(waiting) == ["ScheduleWaiting"]
    assert "waits until run-before ends" in waiting.entry["message"]
    assert waiting.wake == SEVEN + timedelta(hours=1)
    same = ask(one, waiting.entry, SEVEN + timedelta(minutes=1), ScheduleContext(("run-before",)))
    assert (same.entry, same.events) == (waiting.entry, ())
    ended = ask(one, waiting.entry, SEVEN + timedelta(minutes=2))
    assert ended.tick == SEVEN
    assert "message" not in ended.entry


def test_forbid_leaves_out_the_ticks_that_pass_while_it_waits():
    one, around = schedule(concurrencyPolicy="Forbid"), ScheduleContext(("run-before",))
    waiting = ask(one, entry(), SEVEN, around)
    next_tick = SEVEN + timedelta(hours=1)
    still = ask(one, waiting.entry, next_tick, around)
    assert still.entry["nextTime"] == format_second(next_tick)
    assert reasons(still) == ["ScheduleMissed", "ScheduleWaiting"]
    assert still.outcomes == (("missed", 1),)
    ended = ask(one, still.entry, next_tick + timedelta(minutes=5))
    assert (ended.tick, ended.outcomes) == (next_tick, (("started", 1),))


def test_forbid_skips_the_tick_when_the_previous_run_exceeds_the_deadline():
    one = schedule(concurrencyPolicy="Forbid", startingDeadline="5m")
    waiting = ask(one, entry(), SEVEN, ScheduleContext(("run-before",)))
    ended = ask(one, waiting.entry, SEVEN + timedelta(minutes=6))
    assert ended.tick is None
    assert reasons(ended) == ["ScheduleMissed"]


def test_replace_cancels_the_previous_runs_and_starts():
    decision = ask(schedule(concurrencyPolicy="Replace"), entry(), SEVEN, ScheduleContext(("run-a", "run-b")))
    assert (decision.tick, decision.cancel) == (SEVEN, ("run-a", "run-b"))


def test_allow_starts_beside_the_previous_run():
    decision = ask(schedule(), entry(), SEVEN, ScheduleContext(("run-before",)))
    assert (decision.tick, decision.cancel) == (SEVEN, ())


def test_a_full_queue_leaves_the_tick_out_with_an_event():
    decision = ask(schedule(), entry(), SEVEN, ScheduleContext((), queue_full=True))
    assert decision.tick is None
    assert reasons(decision) == ["ScheduleQueueFull"]
    assert decision.entry["nextTime"] == "2026-11-23T08:00:00Z"
    assert decision.outcomes == (("queue_full", 1),)


def test_a_suspended_schedule_starts_nothing_and_catches_up_when_resumed():
    later = SEVEN + timedelta(hours=2)
    suspended = ask(schedule(suspend=True), entry(), later)
    assert (suspended.tick, suspended.wake, suspended.events) == (None, None, ())
    assert not is_due(schedule(suspend=True), entry(), later)
    assert ask(schedule(), suspended.entry, later).tick == later
    with_deadline = ask(schedule(startingDeadline="1h"), suspended.entry, later + timedelta(minutes=5))
    assert with_deadline.tick == later


def test_changed_schedule_restarts_and_keeps_its_last_run():
    before = entry(lastTime="2026-11-23T06:00:00Z", lastRun="run-before")
    decision = ask(schedule(timeZone="Asia/Kolkata"), before, SEVEN + timedelta(minutes=10))
    assert decision.tick is None
    assert decision.entry["nextTime"] == "2026-11-23T07:30:00Z"
    assert decision.entry["lastRun"] == "run-before"


def test_an_invalid_schedule_is_one_event_and_no_run():
    one = schedule(cron="0 0 31 2 *")
    decision = ask(one, {}, SEVEN)
    assert reasons(decision) == ["ScheduleInvalid"]
    assert "cron" in decision.entry["message"]
    assert (decision.tick, decision.wake) == (None, None)
    assert ask(one, decision.entry, SEVEN).events == ()
    assert not is_due(one, decision.entry, SEVEN)


def test_a_corrected_schedule_has_no_message_of_the_earlier_one():
    invalid = ask(schedule(cron="0 0 31 2 *"), {}, SEVEN)
    assert "message" not in ask(schedule(), invalid.entry, SEVEN).entry
    late = SEVEN + timedelta(minutes=6)
    missed = ask(schedule(startingDeadline="5m"), entry(), late)
    assert "message" not in ask(schedule(cron="30 * * * *"), missed.entry, late).entry


def test_names_differ_by_project_schedule_and_tick_and_fit():
    longest = "a" * 20
    names = {
        run_name(uid, one, tick)
        for uid in ("u1", "u2")
        for one in (longest, "b")
        for tick in (SEVEN, SEVEN + timedelta(minutes=1))
    }
    assert len(names) == 8
    assert max(map(len, names)) <= 52
    assert all(one.startswith("run-") for one in names)


def test_the_run_of_a_tick_has_input_entrypoint_labels_and_owner(make):
    project: Project = make.project(status={"activeDeployment": "dep-a"})
    body = run_object(project, schedule(input={"topic": "tides"}, entrypoint="weekly"), SEVEN)
    assert body["spec"] == {"project": "demo", "input": {"topic": "tides"}, "entrypoint": "weekly"}
    assert body["metadata"]["labels"]["crewyard.dev/schedule"] == "nightly"
    assert body["metadata"]["annotations"] == {"crewyard.dev/scheduledAt": "2026-11-23T07:00:00Z"}
    assert body["metadata"]["ownerReferences"][0]["uid"] == project.uid
