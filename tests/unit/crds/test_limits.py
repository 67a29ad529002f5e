"""The installation's limits: API and controller read each identically and report each error."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from api.config import ApiConfigError as ApiConfigError
from api.config import parse as api_settings
from api.internal.claim import RUNNER_LIMITS
from build.settings import SourceLimits as BuildLimits
from controller.config import ConfigError, Timing
from controller.config import parse as controller_settings
from controller.deployment.build_pod_env import SOURCE_LIMITS
from crds.installation_limits import (
    LIMITS_VARIABLE,
    MAX_UPLOAD_VARIABLE,
    RANGES,
    InstallationLimits,
    read_limits,
)
from crds.limits import (
    lowered_retained_deployments,
    lowered_timeouts,
    lowered_warm_builders,
    lowered_warm_pods,
    parse_plans,
    retained_deployments,
    unknown_plan,
    warm_builders,
    warm_pods,
)
from crds.objects import Project
from runner.pid1.claim import ClaimGrant

MIB = 1 << 20
TIMING_FIELDS = {
    "start_seconds": "start_timeout",
    "unschedulable_seconds": "unschedulable",
    "build_seconds": "build_timeout",
}
COMMON_SETTINGS = {
    "CREWYARD_TOKEN_KEY": "0123456789abcdef",
    "CREWYARD_INTERNAL_URL": "http://api:8080",
    "CREWYARD_SERVICE_IMAGE": "service",
    "CREWYARD_KANIKO_IMAGE": "kaniko",
    "CREWYARD_BASE_IMAGES": '{"3.11": "python"}',
    "CREWYARD_REGISTRY": "registry:5000",
}


def read(text="", upload=""):
    errors: list[str] = []
    return read_limits({LIMITS_VARIABLE: text, MAX_UPLOAD_VARIABLE: upload}, errors), errors


@pytest.mark.parametrize("text", ["", " ", "{}"])
def test_defaults(text):
    assert read(text) == (InstallationLimits(), [])


@pytest.mark.parametrize("name", RANGES)
@pytest.mark.parametrize("end", [0, 1])
def test_each_limit_reaches_api_and_controller(name, end):
    value = RANGES[name][end]
    values = {name: value}
    if name in ("run_seconds", "ask_seconds"):
        maximum = name.replace("_seconds", "_max_seconds")
        values[maximum] = RANGES[maximum][1]
    settings = {**COMMON_SETTINGS, LIMITS_VARIABLE: json.dumps(values)}
    api, controller = api_settings(settings), controller_settings(settings)
    assert api.limits == controller.limits
    assert getattr(api.limits, name) == value
    if name in TIMING_FIELDS:
        assert getattr(controller.timing, TIMING_FIELDS[name]) == value


@pytest.mark.parametrize("name", RANGES)
@pytest.mark.parametrize("case", ["least", "most", "text", "flag", "fraction", "nothing"])
def test_error_names_limit_and_range(name, case):
    minimum, maximum = RANGES[name]
    value = {
        "least": minimum - 1,
        "most": maximum + 1,
        "text": str(maximum),
        "flag": True,
        "fraction": minimum + 0.5,
        "nothing": None,
    }[case]
    limits, errors = read(json.dumps({name: value}))
    assert limits == InstallationLimits()
    allowed = f"must be a whole number from {minimum} to {maximum}"
    assert errors == [f"{LIMITS_VARIABLE}: {name} {allowed}, not {json.dumps(value)}"]


@pytest.mark.parametrize("text", ["[]", "5", "queue=5", "{", "null", '[["queue", 5]]', "[" * 100_000])
def test_value_must_be_an_object(text):
    limits, errors = read(text)
    assert limits == InstallationLimits() and len(errors) == 1
    assert errors[0].startswith(f"{LIMITS_VARIABLE}: must be a JSON object")


def test_error_for_an_unknown_name_lists_the_known_ones():
    _, errors = read('{"quue": 5}')
    assert len(errors) == 1 and "'quue'" in errors[0] and all(name in errors[0] for name in RANGES)


def test_duplicate_limit_is_refused():
    assert read('{"queue": 5, "queue": 6}')[1] == [f"{LIMITS_VARIABLE}: queue is given twice"]


def test_both_processes_report_all_errors_and_do_not_start():
    settings = {**COMMON_SETTINGS, LIMITS_VARIABLE: '{"queue": 0, "ratio": "many", "entrys": 5}'}
    for parse, error in ((api_settings, ApiConfigError), (controller_settings, ConfigError)):
        with pytest.raises(error) as raised:
            parse(settings)
        for words in ("queue", "ratio", "unknown limit 'entrys'"):
            assert f"{LIMITS_VARIABLE}: {words}" in str(raised.value)


@pytest.mark.parametrize(
    ("values", "field", "value"),
    [
        ({"run_max_seconds": 600}, "run_seconds", 600),
        ({"build_max_seconds": 600}, "build_seconds", 600),
        ({"build_seconds": 80_000}, "build_max_seconds", 80_000),
        ({"input_bytes": 1000}, "input_object_bytes", 1000),
        ({"input_bytes": 1000}, "input_inline_bytes", 1000),
        ({"input_bytes": 2 * MIB}, "input_object_bytes", 256 * 1024),
    ],
)
def test_default_is_lowered_to_its_upper_bound(values, field, value):
    limits, errors = read(json.dumps(values))
    assert (getattr(limits, field), errors) == (value, [])


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"run_seconds": 90_000}, "run_seconds is 90000, above run_max_seconds, 86400"),
        ({"run_seconds": 601, "run_max_seconds": 600}, "run_seconds is 601, above run_max_seconds, 600"),
        (
            {"build_seconds": 601, "build_max_seconds": 600},
            "build_seconds is 601, above build_max_seconds, 600",
        ),
        ({"input_bytes": 99, "input_object_bytes": 100}, "input_object_bytes is 100, above input_bytes, 99"),
    ],
)
def test_contradicting_limits_are_refused(values, words):
    _, errors = read(json.dumps(values))
    assert len(errors) == 1 and words in errors[0]


@pytest.mark.parametrize("text", ["157286400", "157286400.0", " 157286400\n", "1.572864e8"])
def test_builds_accept_every_archive_that_the_api_accepts(text):
    settings = {**COMMON_SETTINGS, MAX_UPLOAD_VARIABLE: text}
    assert api_settings(settings).limits.context_bytes == 150 * MIB
    assert controller_settings(settings).limits.context_bytes == 150 * MIB


def test_max_upload_must_equal_context_bytes():
    assert read('{"context_bytes": 7}', "7") == (InstallationLimits(context_bytes=7), [])
    _, errors = read('{"context_bytes": 7}', "8")
    assert len(errors) == 1 and MAX_UPLOAD_VARIABLE in errors[0] and "context_bytes 7" in errors[0]


def test_a_timeout_above_the_maximum_is_named():
    limits = InstallationLimits(run_max_seconds=3600, build_max_seconds=5400)
    spec = {"run": {"timeout": "500h"}, "build": {"timeout": "2h"}}
    assert lowered_timeouts(Project({"spec": spec}), limits) == (
        "run.timeout: 500h is lowered to 1h",
        "build.timeout: 2h is lowered to 1h30m",
    )
    assert lowered_timeouts(Project({"spec": {"build": {"timeout": "1h30m"}}}), limits) == ()


def test_waiting_pods_are_limited_by_plan_and_installation():
    plans = parse_plans(
        '{"free": {"requests_per_minute": 60, "concurrent_runs": 2},'
        ' "pro": {"requests_per_minute": 60, "concurrent_runs": 20}}'
    )
    limits = InstallationLimits(warm_pods=5)

    def given(asked, plan):
        project = Project({"spec": {"plan": plan, "run": {"warm": asked}}})
        return warm_pods(project, plans, limits), lowered_warm_pods(project, plans, limits)

    assert given(9, "free") == (2, ("run.warm: 9 is lowered to 2",))
    assert given(9, "pro") == (5, ("run.warm: 9 is lowered to 5",))
    # A project within its limits gets what it asks for.
    assert given(4, "pro") == (4, ())


def test_waiting_builders_are_limited_by_the_installation():
    limits = InstallationLimits(warm_builders=2)

    def given(spec):
        project = Project({"spec": spec})
        return warm_builders(project, limits), lowered_warm_builders(project, limits)

    assert given({}) == (0, ())
    assert given({"build": {"warm": 2}}) == (2, ())
    assert given({"build": {"warm": 3}}) == (2, ("build.warm: 3 is lowered to 2",))


def test_kept_deployments_are_limited_by_the_installation():
    limits = InstallationLimits(retained_deployments=30)

    def given(spec, limits=limits):
        project = Project({"spec": spec})
        return retained_deployments(project, limits), lowered_retained_deployments(project, limits)

    assert given({}) == (20, ())
    assert given({"retention": {"deployments": 30}}) == (30, ())
    lowered = ("retention.deployments: 1000 is lowered to 30",)
    assert given({"retention": {"deployments": 1000}}) == (30, lowered)
    # The default follows a lower limit, and nothing was asked for.
    assert given({"retention": {"runs": "1h"}}, InstallationLimits(retained_deployments=5)) == (5, ())
    # An installation without the limit keeps what a Project may ask for.
    assert given({"retention": {"deployments": 1000}}, InstallationLimits()) == (1000, ())


def test_deployments_a_minute_follow_the_requests_of_a_plan():
    plans = parse_plans(
        '{"small": {"requests_per_minute": 9, "concurrent_runs": 2},'
        ' "own": {"requests_per_minute": 60, "concurrent_runs": 2, "deployments_per_minute": 20}}'
    )
    found = {name: plans.of(name).deployments_of_project for name in plans.by_name}
    assert found == {"free": 6, "pro": 30, "enterprise": 600, "small": 1, "own": 20}


def test_a_plan_that_the_installation_lacks_is_reported():
    plans = parse_plans("")
    assert unknown_plan(Project({"spec": {"plan": "gold"}}), plans) == (
        "plan: gold is lowered to free; the plans are enterprise, free, pro",
    )
    for spec in ({}, {"plan": "pro"}):
        assert unknown_plan(Project({"spec": spec}), plans) == ()


@pytest.mark.parametrize("text", ["0", "-1", "many", "nan", "inf", "1e12", "5368709121"])
def test_invalid_max_upload_is_reported(text):
    limits, errors = read("", text)
    assert limits == InstallationLimits() and len(errors) == 1
    assert errors[0].startswith(f"{MAX_UPLOAD_VARIABLE}: must be a number of bytes from 1 to 5368709120")


def test_kept_uploads_hold_at_least_one_upload():
    assert (
        api_settings({**COMMON_SETTINGS, LIMITS_VARIABLE: '{"context_bytes": 5368709120}'}).kept_uploads
        == 5 << 30
    )
    with pytest.raises(ApiConfigError, match="CREWYARD_KEPT_UPLOADS: must be at least 104857600"):
        api_settings({**COMMON_SETTINGS, "CREWYARD_KEPT_UPLOADS": "1000"})


def test_defaults_of_pods_are_the_same():
    limits = InstallationLimits()
    assert BuildLimits() == BuildLimits(**{name: getattr(limits, name) for name in SOURCE_LIMITS})
    claim = ClaimGrant({"input": {}, "timeout_seconds": 5}, 0.0)
    assert claim.limits == {name: getattr(limits, name) for name in RUNNER_LIMITS}
    assert Timing() == Timing.from_limits(limits)


@given(st.dictionaries(st.sampled_from(sorted(RANGES)) | st.text(max_size=20), st.integers() | st.text()))
def test_limits_stay_in_range_for_any_input(values):
    limits, _ = read(json.dumps(values))
    assert all(low <= getattr(limits, name) <= high for name, (low, high) in RANGES.items())
