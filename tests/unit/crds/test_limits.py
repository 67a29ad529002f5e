"""The installation's limits: each can be set, alike for both processes, and what is wrong is named."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from api.config import ApiConfigError as ApiConfigError
from api.config import parse as api_settings
from api.internal.claim import RUNNER_LIMITS
from build.settings import Limits as OfBuild
from controller.config import ConfigError, Timing
from controller.config import parse as controller_settings
from controller.pods.build_env import SOURCE_LIMITS
from crds.installation_limits import RANGES, LIMITS_VARIABLE, MAX_UPLOAD_VARIABLE, InstallationLimits, read_limits
from runner.pid1.claim import ClaimGrant

MIB = 1 << 20
TIMES = {
    "start_seconds": "start_timeout",
    "unschedulable_seconds": "unschedulable",
    "build_seconds": "build_timeout",
}
BOTH = {
    "CREWYARD_TOKEN_KEY": "0123456789abcdef",
    "CREWYARD_INTERNAL_URL": "http://api:8080",
    "CREWYARD_SERVICE_IMAGE": "service",
    "CREWYARD_KANIKO_IMAGE": "kaniko",
    "CREWYARD_BASE_IMAGES": '{"3.11": "python"}',
    "CREWYARD_REGISTRY": "registry:5000",
}


def read(text="", upload=""):
    wrong: list[str] = []
    return read_limits({LIMITS_VARIABLE: text, MAX_UPLOAD_VARIABLE: upload}, wrong), wrong


@pytest.mark.parametrize("text", ["", " ", "{}"])
def test_what_is_not_set_is_as_it_was(text):
    assert read(text) == (InstallationLimits(), [])


@pytest.mark.parametrize("name", RANGES)
@pytest.mark.parametrize("end", [0, 1])
def test_each_limit_reaches_api_and_controller(name, end):
    value = RANGES[name][end]
    given = {name: value}
    if name == "run_seconds":
        given["run_max_seconds"] = RANGES[name][1]
    settings = {**BOTH, LIMITS_VARIABLE: json.dumps(given)}
    api, controller = api_settings(settings), controller_settings(settings)
    assert api.limits == controller.limits
    assert getattr(api.limits, name) == value
    if name in TIMES:
        assert getattr(controller.timing, TIMES[name]) == value


@pytest.mark.parametrize("name", RANGES)
@pytest.mark.parametrize("what", ["least", "most", "text", "flag", "fraction", "nothing"])
def test_a_wrong_limit_is_named_with_what_is_allowed(name, what):
    least, most = RANGES[name]
    value = {
        "least": least - 1,
        "most": most + 1,
        "text": str(most),
        "flag": True,
        "fraction": least + 0.5,
        "nothing": None,
    }[what]
    found, wrong = read(json.dumps({name: value}))
    assert found == InstallationLimits()
    assert wrong == [f"{LIMITS_VARIABLE}: {name} must be a whole number from {least} to {most}, not {json.dumps(value)}"]


@pytest.mark.parametrize("text", ["[]", "5", "queue=5", "{", "null", '[["queue", 5]]', "[" * 100_000])
def test_what_is_no_object_is_refused(text):
    found, wrong = read(text)
    assert found == InstallationLimits() and len(wrong) == 1
    assert wrong[0].startswith(f"{LIMITS_VARIABLE}: must be a JSON object")


def test_an_unknown_name_is_told_the_known_ones():
    _, wrong = read('{"quue": 5}')
    assert len(wrong) == 1 and "'quue'" in wrong[0] and all(name in wrong[0] for name in RANGES)


def test_a_limit_that_is_given_twice_is_refused():
    assert read('{"queue": 5, "queue": 6}')[1] == [f"{LIMITS_VARIABLE}: queue is given twice"]


def test_both_processes_name_all_that_is_wrong_and_do_not_start():
    settings = {**BOTH, LIMITS_VARIABLE: '{"queue": 0, "ratio": "many", "entrys": 5}'}
    for parse, error in ((api_settings, ApiConfigError), (controller_settings, ConfigError)):
        with pytest.raises(error) as raised:
            parse(settings)
        for words in ("queue", "ratio", "there is no limit 'entrys'"):
            assert f"{LIMITS_VARIABLE}: {words}" in str(raised.value)


@pytest.mark.parametrize(
    ("given", "field", "value"),
    [
        ({"run_max_seconds": 600}, "run_seconds", 600),
        ({"input_bytes": 1000}, "input_object_bytes", 1000),
        ({"input_bytes": 1000}, "input_inline_bytes", 1000),
        ({"input_bytes": 2 * MIB}, "input_object_bytes", 256 * 1024),
    ],
)
def test_a_default_gives_way_to_a_lower_limit_above_it(given, field, value):
    found, wrong = read(json.dumps(given))
    assert (getattr(found, field), wrong) == (value, [])


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"run_seconds": 90_000}, "run_seconds is 90000, above run_max_seconds, 86400"),
        ({"run_seconds": 601, "run_max_seconds": 600}, "run_seconds is 601, above run_max_seconds, 600"),
        ({"input_bytes": 99, "input_object_bytes": 100}, "input_object_bytes is 100, above input_bytes, 99"),
    ],
)
def test_limits_that_contradict_each_other_are_refused(given, words):
    _, wrong = read(json.dumps(given))
    assert len(wrong) == 1 and words in wrong[0]


@pytest.mark.parametrize("text", ["157286400", "157286400.0", " 157286400\n", "1.572864e8"])
def test_an_archive_that_the_api_takes_is_not_too_large_for_its_build(text):
    settings = {**BOTH, MAX_UPLOAD_VARIABLE: text}
    assert api_settings(settings).limits.context_bytes == 150 * MIB
    assert controller_settings(settings).limits.context_bytes == 150 * MIB


def test_the_older_name_may_say_the_same_but_nothing_else():
    assert read('{"context_bytes": 7}', "7") == (InstallationLimits(context_bytes=7), [])
    _, wrong = read('{"context_bytes": 7}', "8")
    assert len(wrong) == 1 and MAX_UPLOAD_VARIABLE in wrong[0] and "context_bytes 7" in wrong[0]


@pytest.mark.parametrize("text", ["0", "-1", "many", "nan", "inf", "1e12", "5368709121"])
def test_a_wrong_size_of_uploads_is_named(text):
    found, wrong = read("", text)
    assert found == InstallationLimits() and len(wrong) == 1
    assert wrong[0].startswith(f"{MAX_UPLOAD_VARIABLE}: must be a number of bytes from 1 to 5368709120")


def test_what_is_kept_for_a_project_holds_at_least_one_upload():
    assert api_settings({**BOTH, LIMITS_VARIABLE: '{"context_bytes": 5368709120}'}).kept_uploads == 5 << 30
    with pytest.raises(ApiConfigError, match="CREWYARD_KEPT_UPLOADS: must be at least 104857600"):
        api_settings({**BOTH, "CREWYARD_KEPT_UPLOADS": "1000"})


def test_pods_that_are_told_nothing_keep_the_same():
    limits = InstallationLimits()
    assert OfBuild() == OfBuild(**{name: getattr(limits, name) for name in SOURCE_LIMITS})
    untold = ClaimGrant({"input": {}, "timeout_seconds": 5}, 0.0)
    assert untold.limits == {name: getattr(limits, name) for name in RUNNER_LIMITS}
    assert Timing() == Timing.from_limits(limits)


@given(st.dictionaries(st.sampled_from(sorted(RANGES)) | st.text(max_size=20), st.integers() | st.text()))
def test_whatever_is_given_the_limits_are_within_their_bounds(given):
    found, _ = read(json.dumps(given))
    assert all(least <= getattr(found, name) <= most for name, (least, most) in RANGES.items())
