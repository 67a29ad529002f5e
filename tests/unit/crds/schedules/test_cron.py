"""Ticks of cron expressions, above all around the two clock changes of a year."""

import itertools
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crds.schedules.cron import MAX_MISSED_TICKS, CronInvalid, parse

SPRING = datetime(2026, 3, 28, 23, tzinfo=UTC)
"""Midnight before Berlin's clock goes from 02:00 to 03:00."""
AUTUMN = datetime(2026, 10, 24, 22, tzinfo=UTC)
"""Midnight before Berlin's clock goes from 03:00 back to 02:00."""


def ticks(cron, begin, count, zone="Europe/Berlin"):
    """Return local day, time and offset of the first ticks."""
    found, moment = [], begin
    for _ in range(count):
        moment = parse(cron, zone).next_after(moment)
        found.append(moment.astimezone(parse(cron, zone).zone).strftime("%d %H:%M%z"))
    return found


@pytest.mark.parametrize(
    ("cron", "expected"),
    [
        # 02:30 does not exist on the 29th: right after the change, once.
        ("30 2 * * *", ["29 03:00+0200", "30 02:30+0200"]),
        ("0,30 2,3 * * *", ["29 03:00+0200", "29 03:30+0200", "30 02:00+0200"]),
        # By the elapsed time: no tick is lost, none is added.
        ("*/30 * * * *", ["29 00:30+0100", "29 01:00+0100", "29 01:30+0100", "29 03:00+0200"]),
        ("0 * * * *", ["29 01:00+0100", "29 03:00+0200", "29 04:00+0200"]),
        ("0 7 * * *", ["29 07:00+0200", "30 07:00+0200"]),
    ],
)
def test_ticks_when_the_clock_goes_forward(cron, expected):
    assert ticks(cron, SPRING, len(expected)) == expected


@pytest.mark.parametrize(
    ("cron", "expected"),
    [
        # 02:30 exists twice on the 25th: the first one only.
        ("30 2 * * *", ["25 02:30+0200", "26 02:30+0100"]),
        ("*/30 2 * * *", ["25 02:00+0200", "25 02:30+0200", "25 02:00+0100", "25 02:30+0100"]),
        ("0 * * * *", ["25 01:00+0200", "25 02:00+0200", "25 02:00+0100", "25 03:00+0100"]),
        ("0 7 * * *", ["25 07:00+0100", "26 07:00+0100"]),
    ],
)
def test_ticks_when_the_clock_goes_back(cron, expected):
    assert ticks(cron, AUTUMN, len(expected)) == expected


def test_a_tick_asked_for_in_the_repeated_hour_is_later():
    second_half_past_two = datetime(2026, 10, 25, 1, 15, tzinfo=UTC)
    assert ticks("30 2 * * *", second_half_past_two, 1) == ["26 02:30+0100"]


@pytest.mark.parametrize(
    ("cron", "zone", "begin", "expected"),
    [
        ("@daily", "UTC", datetime(2026, 11, 23, 11, tzinfo=UTC), "2026-11-24T00:00:00+00:00"),
        ("@hourly", "Asia/Kolkata", datetime(2026, 11, 23, 11, tzinfo=UTC), "2026-11-23T11:30:00+00:00"),
        ("0 7 * * MON-FRI", "UTC", datetime(2026, 11, 27, 7, tzinfo=UTC), "2026-11-30T07:00:00+00:00"),
        ("0 0 29 2 *", "UTC", datetime(2026, 1, 1, tzinfo=UTC), "2028-02-29T00:00:00+00:00"),
        # Both days given: either fits, as in cron.
        ("0 0 13 * 5", "UTC", datetime(2026, 11, 23, tzinfo=UTC), "2026-11-27T00:00:00+00:00"),
    ],
)
def test_next_tick(cron, zone, begin, expected):
    assert parse(cron, zone).next_after(begin).isoformat() == expected


@pytest.mark.parametrize(
    ("cron", "zone", "field"),
    [
        ("* * * *", "UTC", "cron"),
        ("* * * * * *", "UTC", "cron"),
        ("61 * * * *", "UTC", "cron"),
        ("0 0 * * 8", "UTC", "cron"),
        ("0 0 30 2 *", "UTC", "cron"),
        ("@reboot", "UTC", "cron"),
        ("0 0 * * *", "Europe/Bonn", "timeZone"),
        ("0 0 * * *", "../etc/passwd", "timeZone"),
        ("0 0 * * *", "Europe", "timeZone"),
    ],
)
def test_an_invalid_schedule_says_which_field_to_change(cron, zone, field):
    with pytest.raises(CronInvalid) as caught:
        parse(cron, zone)
    assert caught.value.field == field
    assert "use " in str(caught.value)


CRONS = st.sampled_from(
    ["30 2 * * *", "*/7 * * * *", "15,45 1-3 * * *", "0 */2 * * *", "0 3 * * SUN", "@daily"]
)
ZONES = st.sampled_from(
    ["UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "America/Santiago", "Asia/Kathmandu"]
)
MOMENTS = st.integers(0, 2 * 366 * 24 * 60).map(
    lambda minutes: datetime(2026, 1, 1, tzinfo=UTC) + timedelta(minutes=minutes)
)


@given(CRONS, ZONES, MOMENTS)
def test_ticks_are_later_than_asked_and_independent_of_the_beginning(cron, zone, moment):
    schedule = parse(cron, zone)
    first = schedule.next_after(moment)
    assert first > moment
    assert (first.second, first.microsecond) == (0, 0)
    # Nothing between them: a beginning in the gap gives the same tick.
    assert schedule.next_after(moment + (first - moment) / 2) == first


@given(CRONS, ZONES, MOMENTS, st.integers(0, 3 * 24 * 60), st.sampled_from([0, 0.5, 30, 59.5]))
def test_missed_ticks_are_those_of_repeated_steps(cron, zone, moment, minutes, seconds):
    schedule = parse(cron, zone)
    first, now = schedule.next_after(moment), moment + timedelta(minutes=minutes, seconds=seconds)
    steps = itertools.accumulate(itertools.repeat(first), lambda tick, _: schedule.next_after(tick))
    passed = list(itertools.takewhile(lambda tick: tick <= now, steps))
    missed = schedule.missed(first, now)
    if not passed:
        assert missed is None
        return
    assert missed.newest == passed[-1]
    assert missed.count == min(len(passed), MAX_MISSED_TICKS)
    assert missed.more == (len(passed) > MAX_MISSED_TICKS)


def test_years_of_missed_ticks_are_not_counted_one_by_one():
    now = datetime(2026, 11, 23, 11, 30, 30, tzinfo=UTC)
    missed = parse("* * * * *").missed(datetime(2020, 1, 1, tzinfo=UTC), now)
    assert (missed.newest, missed.count, missed.more) == (now.replace(second=0), MAX_MISSED_TICKS, True)


@pytest.mark.parametrize("second", [0, 0.5, 58.5, 59.5])
def test_the_newest_of_many_missed_ticks_is_one_in_each_second(second):
    """The run of a moment other than a tick ignores the deadline, and another one starts at the tick."""
    first = datetime(2026, 11, 23, tzinfo=UTC)
    now = datetime(2026, 11, 23, 11, 2, tzinfo=UTC) + timedelta(seconds=second)
    missed = parse("0-20 * * * *").missed(first, now)
    assert (missed.newest, missed.more) == (now.replace(second=0, microsecond=0), True)
    missed = parse("3-20 * * * *").missed(first + timedelta(minutes=3), now)
    assert (missed.newest, missed.more) == (datetime(2026, 11, 23, 10, 20, tzinfo=UTC), True)
