"""Names, durations, times, conditions, limits."""

import json
import re
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crds import conditions, durations, entrypoints, limits, names, times
from crds.conditions import Condition
from crds.installation_limits import InstallationLimits
from crds.objects import Deployment, Project, Run

NOW = datetime(2026, 11, 21, 10, 0, 0, 123456, tzinfo=UTC)


@given(st.from_regex(r"(run|dep)-[a-z0-9]([-a-z0-9]{0,20}[a-z0-9])?", fullmatch=True))
def test_ids_and_names_are_inverse(name):
    identifier = names.id_of(name)
    assert identifier[3] == "_"
    assert names.name_of(identifier) == name


@pytest.mark.parametrize(
    ("text", "seconds"), [("90s", 90), ("30m", 1800), ("1h30m", 5400), ("2h", 7200), ("1h1s", 3601)]
)
def test_durations(text, seconds):
    assert durations.seconds(text) == seconds
    assert durations.seconds(durations.text(seconds)) == seconds


@pytest.mark.parametrize("text", ["", "0s", "5", "1.5h", "-1m", "30 m", "m", "1d", "٣s"])
def test_invalid_duration(text):
    with pytest.raises(ValueError, match="for example 1h30m"):
        durations.seconds(text)


@pytest.mark.parametrize(
    ("requested", "plan", "problem"),
    [
        ("editor", {"writer": "a:b", "critic": "a:c"}, "has no entrypoint 'editor'; it has writer, critic"),
        ("editor", {}, "has no entrypoint 'editor', and none with a name; leave entrypoint out"),
        ("writer", {"writer": "a:b"}, None),
        ("a:other", {"writer": "a:b"}, None),
        (None, {}, None),
    ],
)
def test_an_unknown_entrypoint_is_refused_with_the_known_ones(requested, plan, problem):
    assert entrypoints.problem(requested, {"entrypoint": "a:b", "entrypoints": plan}) == problem


@pytest.mark.parametrize(
    "entrypoint", ["pkg.crew:MyCrew", "01_start.agent-one:Graph.run", "writer", "02/main.py"]
)
def test_entrypoint_of_a_run(entrypoint):
    assert re.match(entrypoints.PATTERN, entrypoint)


@pytest.mark.parametrize(
    "entrypoint", ["pkg.crew:01", "a..b:c", ":c", "a:b:c", "-m:c", "a:b-c", "../main.py"]
)
def test_invalid_entrypoint_of_a_run(entrypoint):
    assert not re.match(entrypoints.PATTERN, entrypoint)


def test_times_are_utc_with_z():
    assert times.format_time(NOW) == "2026-11-21T10:00:00.123456Z"
    assert times.format_second(NOW) == "2026-11-21T10:00:00Z"
    assert times.parse_time("2026-11-21T11:00:00.123456+01:00") == NOW
    with pytest.raises(ValueError, match="time zone"):
        times.parse_time("2026-11-21T11:00:00")


@pytest.mark.parametrize(
    "text", ["0001-01-01T00:00:00+23:59", "9999-12-31T23:59:59-00:01", "2026-11-21T10:00", "now"]
)
def test_invalid_time(text):
    with pytest.raises(ValueError, match=r".+"):
        times.parse_time(text)


def test_transition_time_changes_with_the_status():
    desired = [Condition("Ready", None, "Pending", "Waiting.")]
    first = conditions.merge(
        [{"type": "Ready", "status": "Unknown", "lastTransitionTime": "1970-01-01T00:00:00Z"}],
        desired,
        1,
        NOW,
    )
    later = NOW.replace(hour=11)
    assert first[0]["lastTransitionTime"] == "2026-11-21T10:00:00Z"
    assert conditions.merge(first, desired, 1, later) == first
    changed = conditions.merge(first, [Condition("Ready", True, "Built", "Done.")], 2, later)
    assert changed[0]["lastTransitionTime"] == "2026-11-21T11:00:00Z"
    assert (changed[0]["status"], changed[0]["observedGeneration"]) == ("True", 2)


def timeouts(run: str | None, plan: str | None, project: str | None) -> int:
    return limits.run_timeout(
        Run({"spec": {"timeout": run} if run else {}}),
        Deployment({"status": {"plan": {"timeout": plan} if plan else {}}}),
        Project({"spec": {"run": {"timeout": project}} if project else {}}),
        InstallationLimits(),
    )


@pytest.mark.parametrize(
    ("run", "plan", "project", "seconds"),
    [
        ("1m", "2m", "3m", 60),
        (None, "2m", "3m", 120),
        (None, None, "3m", 180),
        (None, None, None, 3600),
        ("48h", None, None, 86400),
    ],
)
def test_precedence_and_maximum_of_timeouts(run, plan, project, seconds):
    assert timeouts(run, plan, project) == seconds


def test_parse_plans():
    plans = limits.parse_plans('{"pro": {"requests_per_minute": 1, "concurrent_runs": 3}}')
    assert plans.of("pro") == limits.PlanLimits(1, 3)
    assert plans.of("unknown") == plans.of("free") == limits.PlanLimits(60, 2)
    with pytest.raises(ValueError, match="'pro' needs the integers"):
        limits.parse_plans('{"pro": {"concurrent_runs": "many"}}')


def plans_with(**lowered: object) -> limits.Plans:
    plan = {"requests_per_minute": 1, "concurrent_runs": 3, "limits": lowered}
    return limits.parse_plans(json.dumps({"pro": plan}))


def test_a_plan_lowers_limits_of_the_installation():
    installation = InstallationLimits(queue=50, run_max_seconds=7200)
    plans = plans_with(queue=5, run_max_seconds=9000, warm_pods=0)
    lowered = plans.limits_of("pro", installation)
    assert (lowered.queue, lowered.run_max_seconds, lowered.warm_pods) == (5, 7200, 0)
    assert lowered == replace(installation, queue=5, warm_pods=0)
    assert plans.limits_of("free", installation) is installation
    assert (plans.has_limits, limits.Plans().has_limits) == (True, False)


@pytest.mark.parametrize(
    ("lowered", "message"),
    [
        ({"context_bytes": 1}, "'pro': limits: a plan cannot lower 'context_bytes'; it can lower queue, "),
        ({"queue": 0}, "'pro': limits: queue must be a whole number from 1 to 100000"),
        ({"queue": True}, "'pro': limits: queue must be a whole number"),
        ({"queue": "5"}, "'pro': limits: queue must be a whole number"),
    ],
)
def test_a_limit_that_a_plan_cannot_have_is_refused(lowered, message):
    with pytest.raises(ValueError, match=message):
        plans_with(**lowered)


def test_limits_of_a_plan_must_be_an_object():
    with pytest.raises(ValueError, match="'pro': limits must be an object"):
        limits.parse_plans('{"pro": {"requests_per_minute": 1, "concurrent_runs": 3, "limits": ["queue"]}}')


def test_a_plan_with_lower_limits_is_within_one_without():
    low, high, none = (plans_with(**lowered).of("pro") for lowered in ({"queue": 5}, {"queue": 6}, {}))
    assert low.is_within(low) and low.is_within(high) and low.is_within(none)
    assert not high.is_within(low) and not none.is_within(high)
