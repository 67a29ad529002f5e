"""What pods that wait for a run and pods that wait for a build have in common."""

import pytest

from controller.pods import waiting


@pytest.mark.parametrize(
    ("project", "name"),
    [("demo", "warm-demo-x1"), ("p" * 52, f"warm-{'p' * 40}-x1"), (f"{'p' * 39}-q", f"warm-{'p' * 39}-x1")],
)
def test_a_long_project_is_cut_without_a_trailing_dash(project, name):
    assert waiting.pod_name(project, "x1") == name


def test_the_fingerprint_does_not_depend_on_the_order_of_keys():
    assert waiting.fingerprint({"a": 1, "b": 2}) == waiting.fingerprint({"b": 2, "a": 1})
    assert waiting.fingerprint({"a": 1}) != waiting.fingerprint({"a": 2})


def test_a_secret_that_was_created_again_has_another_version():
    secret = {"metadata": {"uid": "u1", "resourceVersion": "5"}}
    assert waiting.secret_version(secret) == ["u1", "5"]
    assert waiting.secret_version(None) == [None, None]


def test_the_token_outlives_the_longest_wait(config):
    longest = config.timing.unschedulable + config.limits.warm_seconds
    assert waiting.token_expiry(config, 1000.9) == 1000 + longest + waiting.TOKEN_SLACK_SECONDS


def test_the_kubelet_counts_the_deadline_from_the_start(make):
    pod = make.waiting("warm-a", "crew", {}, 60, None)
    assert waiting.deadline_seconds(pod, 100, make.now) == 160
    started = make.waiting("warm-a", "crew", {}, 60, None, startTime=make.ago(5))
    assert waiting.deadline_seconds(started, 100, make.now) == 105
