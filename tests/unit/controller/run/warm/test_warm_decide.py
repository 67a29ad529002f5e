"""Which waiting pods a Project has, decided from those that exist."""

from dataclasses import replace
from datetime import timedelta

import pytest

from controller.run.warm.decide import FAILED_EVENT, WarmPool, decide, refused
from controller.run.warm.pod import template
from crds.installation_limits import InstallationLimits
from crds.names import LABEL_DEPLOYMENT, LABEL_RUN, LABEL_WARM
from crds.times import format_second

NAMES = ["warm-demo-1", "warm-demo-2", "warm-demo-3", "warm-demo-4"]


@pytest.fixture
def source(make, config):
    return template(make.project(), make.deployment(), None, config)


@pytest.fixture
def waiting(make, source):
    def build(name, age=60, fingerprint=source.fingerprint, running=None, **more):
        labels = {LABEL_DEPLOYMENT: "dep-a", LABEL_WARM: fingerprint}
        return make.waiting(name, "crew", labels, age, running, **more)

    return build


@pytest.fixture
def look(make, config, source):
    def look(pods, size=2, failure=None, source=source, now=make.now, config=config, bound=()):
        return decide(WarmPool(size, source, pods, failure, bound), NAMES, now, config)

    return look


def created(decision):
    return [child.name for child in decision.create]


def deleted(decision):
    return sorted(child.name for child in decision.delete)


def test_missing_pods_are_created(look, waiting):
    decision = look([waiting("warm-demo-0")])
    assert (created(decision), deleted(decision)) == (["warm-demo-1"], [])
    assert decision.status == {"warm": None}
    metadata = decision.create[0].body["metadata"]
    assert LABEL_RUN not in metadata["labels"]
    assert [owner["kind"] for owner in metadata["ownerReferences"]] == ["Project"]
    assert "activeDeadlineSeconds" not in decision.create[0].body["spec"]


def test_a_full_pool_is_left_alone(look, waiting):
    decision = look([waiting("a"), waiting("b")])
    assert (created(decision), deleted(decision)) == ([], [])
    assert decision.requeue_after == 30


def test_pods_above_the_size_are_deleted_youngest_first(look, waiting):
    assert deleted(look([waiting("a", 50), waiting("b", 40), waiting("c", 30)])) == ["c"]


@pytest.mark.parametrize(
    "change",
    [
        {"fingerprint": "of-another-deployment"},
        {"age": 3600},
    ],
)
def test_a_stale_pod_is_deleted_before_its_successor_is_created(look, waiting, change):
    stale = waiting("a", **change)
    decision = look([stale, waiting("b")])
    assert (created(decision), deleted(decision)) == ([], ["a"])
    # Only as it was read: a Run may have got it meanwhile.
    assert decision.delete[0].resource_version == stale.resource_version
    assert decision.requeue_after < 1
    assert created(look([waiting("b")])) == ["warm-demo-1"]


def test_an_age_is_looked_at_when_it_is_reached(look, waiting):
    assert look([waiting("a", 3590), waiting("b")]).requeue_after == 10


def test_the_age_is_a_limit_of_the_installation(look, waiting, config):
    short = replace(config, limits=replace(InstallationLimits(), warm_seconds=100))
    assert deleted(look([waiting("a", 99), waiting("b", 100)], config=short)) == ["b"]


def test_without_a_template_all_are_deleted(look, waiting):
    decision = look([waiting("a")], size=0, source=None)
    assert (created(decision), deleted(decision), decision.requeue_after) == ([], ["a"], None)
    assert look([], size=0, source=None).delete == ()


def test_a_missing_template_is_looked_for_again(look, waiting):
    """No event tells that a Secret is there now, and the cache may be older than the Project's status."""
    decision = look([waiting("a")], source=None)
    assert (created(decision), deleted(decision), decision.requeue_after) == ([], ["a"], 30)


def test_a_pod_that_is_being_deleted_counts_as_gone(look, waiting, make):
    gone = waiting("a", metadata={"deletionTimestamp": make.ago(1)})
    decision = look([gone, waiting("b")])
    assert (created(decision), deleted(decision)) == (["warm-demo-1"], [])


@pytest.fixture
def failed(waiting, make):
    def build(name="a", message='{"message": "No module named x"}', **more):
        return waiting(name, phase="Failed", containerStatuses=make.ended(code=79, message=message), **more)

    return build


def test_a_failure_is_recorded_with_its_reason_and_the_pod_is_kept(look, failed, make):
    decision = look([failed()])
    failure = decision.status["warm"]
    assert (created(decision), deleted(decision)) == ([], [])
    assert (failure["failures"], failure["pod"]) == (1, "uid-a")
    assert failure["retryTime"] == format_second(make.now + timedelta(seconds=10))
    assert "No module named x" in failure["message"]
    assert [(event.reason, event.warning) for event in decision.events] == [(FAILED_EVENT, True)]
    assert decision.requeue_after == 10


def test_a_pod_that_the_kubelet_rejected_has_its_reason(look, waiting):
    rejected = waiting(
        "a", phase="Failed", reason="OutOfcpu", message="Pod was rejected: cpu", containerStatuses=[]
    )
    message = look([rejected]).status["warm"]["message"]
    assert message == "Pod a failed while it waited for a run: Pod was rejected: cpu"


def test_a_recorded_failure_counts_once(look, failed):
    first = look([failed()]).status["warm"]
    again = look([failed()], failure=first)
    assert (again.status["warm"], again.events) == (first, ())


def test_the_delay_doubles_up_to_half_an_hour(look, failed, make):
    failure, delays = None, []
    for number in range(12):
        failure = look([failed(f"p{number}")], failure=failure).status["warm"]
        delays.append((failure["failures"], failure["retryTime"]))
    assert delays[:3] == [
        (count, format_second(make.now + timedelta(seconds=wait)))
        for count, wait in ((1, 10), (2, 20), (3, 40))
    ]
    assert delays[-1] == (12, format_second(make.now + timedelta(seconds=1800)))


def test_the_next_attempt_is_one_pod(look, failed, make):
    failure = look([failed()]).status["warm"]
    later = make.now + timedelta(seconds=11)
    first = look([failed()], failure=failure, now=later)
    assert (created(first), deleted(first)) == ([], ["a"])
    assert created(look([], size=3, failure=failure, now=later)) == ["warm-demo-1"]


def test_a_retry_time_of_a_clock_that_was_ahead_is_now(look, failed, make):
    """Else no pod starts until the time that the clock had, and none that stays up ends the failure."""
    failure = look([failed()], now=make.now + timedelta(days=1)).status["warm"]
    decision = look([], failure=failure)
    assert created(decision) == ["warm-demo-1"]
    assert decision.status["warm"] == {**failure, "retryTime": format_second(make.now)}
    latest = {**failure, "retryTime": format_second(make.now + timedelta(seconds=1800))}
    assert created(look([], failure=latest)) == []


def test_until_it_stays_up_there_is_no_other(look, failed, waiting, make):
    failure = look([failed()]).status["warm"]
    born = {"creationTimestamp": format_second(make.now + timedelta(seconds=11))}
    attempt = waiting("next", running=-12, metadata=born)
    soon = make.now + timedelta(seconds=20)
    decision = look([attempt], size=3, failure=failure, now=soon)
    assert (created(decision), decision.status["warm"]) == ([], failure)
    proven = make.now + timedelta(seconds=45)
    decision = look([attempt], size=3, failure=failure, now=proven)
    assert (created(decision), decision.status["warm"]) == (["warm-demo-1", "warm-demo-2"], None)


@pytest.mark.parametrize(
    ("running", "fingerprint", "proven"), [(-11, None, True), (-30, None, False), (-11, "f", False)]
)
def test_a_pod_that_got_a_run_proves_it_too(
    look, failed, waiting, source, make, running, fingerprint, proven
):
    """Where runs take each waiting pod at once, none waits long enough."""
    failure = look([failed()]).status["warm"]
    born = {"creationTimestamp": format_second(make.now + timedelta(seconds=11))}
    taken = waiting("taken", running=running, metadata=born, fingerprint=fingerprint or source.fingerprint)
    decision = look([], size=3, failure=failure, now=make.now + timedelta(seconds=45), bound=[taken])
    assert (len(created(decision)), decision.status["warm"]) == ((3, None) if proven else (1, failure))


def test_pods_that_work_stay_after_a_failure(look, failed, waiting):
    decision = look([failed(), waiting("b"), waiting("c")], size=3)
    assert (created(decision), deleted(decision)) == ([], [])
    assert decision.status["warm"]["failures"] == 1


def test_another_template_has_no_failures(look, failed, make, config):
    failure = look([failed()]).status["warm"]
    other = template(make.project(), make.deployment("dep-b"), None, config)
    decision = look([failed()], failure=failure, source=other)
    assert (decision.status["warm"], deleted(decision)) == (None, ["a"])


@pytest.mark.parametrize("reason", ["Evicted", "NodeShutdown", "NodeLost"])
def test_a_disrupted_pod_is_replaced_without_delay(look, failed, reason):
    decision = look([failed(reason=reason)])
    assert (deleted(decision), decision.status["warm"]) == (["a"], None)


def test_a_pod_that_exceeds_its_own_storage_limit_is_a_failure(look, waiting):
    text = "Pod ephemeral local storage usage exceeds the total limit of containers 1Gi."
    decision = look([waiting("a", phase="Failed", reason="Evicted", message=text, containerStatuses=[])])
    assert (created(decision), deleted(decision)) == ([], [])
    assert text in decision.status["warm"]["message"]


def test_a_refused_create_is_a_failure(make, config, source):
    decision = refused(WarmPool(2, source, []), "exceeded quota: pods", make.now)
    assert "exceeded quota: pods" in decision.status["warm"]["message"]
    assert decision.requeue_after == 10


@pytest.mark.parametrize(
    ("project", "deployment", "secret"),
    [
        ({"pod": {"env": [{"name": "A", "value": "1"}]}}, {}, None),
        ({"run": {"resources": {"limits": {"memory": "512Mi"}}}}, {}, None),
        ({"run": {"askTimeout": "5m"}}, {}, None),
        ({}, {"name": "dep-b"}, None),
        ({}, {"status": {"plan": {"entrypoint": "main:other"}}}, None),
        ({}, {}, {"metadata": {"uid": "u", "resourceVersion": "1"}, "data": {}}),
    ],
)
def test_the_fingerprint_has_everything_a_pod_is_made_from(make, config, source, project, deployment, secret):
    changed = template(make.project(**project), make.deployment(**deployment), secret, config)
    assert changed.fingerprint != source.fingerprint


def test_a_new_version_of_the_variables_changes_the_fingerprint(make, config):
    versions = [{"metadata": {"uid": "u", "resourceVersion": version}, "data": {}} for version in ("1", "2")]
    found = {template(make.project(), make.deployment(), one, config).fingerprint for one in versions}
    assert len(found) == 2


def test_the_fingerprint_has_no_token_and_no_object_version(make, config, source):
    later = template(make.project(), make.deployment(), None, config)
    assert later == replace(later, fingerprint=source.fingerprint)
