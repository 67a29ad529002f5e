"""Which waiting pod a Run gets, and the write that gives it."""

from dataclasses import replace
from datetime import timedelta

import pytest

from controller.pods.placement import NOT_DISRUPTED, NodePlacement, NodePlacements
from controller.run import startup
from controller.run.decide import ObservedRun, decide
from controller.run.outcome import CONTAINER
from controller.run.pod import deadline
from controller.run.resolve import RunReady
from controller.run.warm.binding import assign, bind, still_waits, waited_seconds
from controller.run.warm.pod import template
from crds import kinds, pod_tokens
from crds.names import (
    ANNOTATION_BOUND_AT,
    COMPONENT_RUN,
    LABEL_COMPONENT,
    LABEL_DEPLOYMENT,
    LABEL_PROJECT,
    LABEL_RUN,
    LABEL_WARM,
)
from crds.objects import Pod
from crds.times import format_time

PLAN = {"entrypoint": "main:kickoff", "entrypoints": {"main": "main:kickoff", "other": "main:other"}}
RUNNING = [{"name": CONTAINER, "state": {"running": {"startedAt": "2026-11-21T11:59:01Z"}}}]


@pytest.fixture
def ready(make):
    return RunReady(make.project(), make.deployment(status={"plan": PLAN}))


@pytest.fixture
def source(ready, config):
    return template(ready.project, ready.deployment, None, config)


@pytest.fixture
def waiting(make, source):
    def build(name="warm-a", age=60, labels=(), **more):
        own = {
            LABEL_COMPONENT: COMPONENT_RUN,
            LABEL_PROJECT: "demo",
            LABEL_DEPLOYMENT: "dep-a",
            LABEL_WARM: source.fingerprint,
            **dict(labels),
        }
        metadata = {"labels": own, "creationTimestamp": make.ago(age), **more.pop("metadata", {})}
        more = {"containerStatuses": RUNNING, "startTime": make.ago(age), **more}
        return make.pod(name, owner="uid-demo", metadata=metadata, **more)

    return build


@pytest.fixture
def take(make, source, ready):
    def take(runs, pods):
        pairs = [(run, ready) for run in runs]
        return {run: pod.name for run, pod in assign(pairs, pods, source, make.now, 3600).items()}

    return take


def test_the_first_runs_get_the_oldest_pods(make, take, waiting):
    runs = [make.run("run-a"), make.run("run-b"), make.run("run-c")]
    taken = take(runs, [waiting("young", 10), waiting("old", 20)])
    assert taken == {"run-a": "old", "run-b": "young"}


@pytest.mark.parametrize(
    "change",
    [
        {"labels": {LABEL_RUN: "run-z"}},
        {"labels": {LABEL_WARM: "of-another-secret"}},
        {"labels": {LABEL_COMPONENT: "another"}},
        {"metadata": {"deletionTimestamp": "2026-11-21T12:00:00Z"}},
        {"phase": "Pending"},
        {"phase": "Failed"},
        {"containerStatuses": [{"name": CONTAINER, "state": {"terminated": {"exitCode": 79}}}]},
        {"containerStatuses": []},
        {"age": 3600},
    ],
)
def test_a_pod_that_cannot_take_a_run(make, take, waiting, change):
    assert take([make.run()], [waiting(**change)]) == {}


@pytest.mark.parametrize(
    ("entrypoint", "taken"),
    [(None, True), ("main", True), ("main:kickoff", True), ("other", False), ("x:y", False)],
)
def test_a_run_of_another_entrypoint_starts_cold(make, take, waiting, entrypoint, taken):
    run = make.run(project="demo", **({"entrypoint": entrypoint} if entrypoint else {}))
    assert bool(take([run], [waiting()])) is taken


def test_a_run_of_another_deployment_starts_cold(make, source, waiting):
    other = RunReady(make.project(), make.deployment("dep-b", status={"plan": PLAN}))
    assert assign([(make.run(), other)], [waiting()], source, make.now, 3600) == {}


def test_the_write_makes_the_pod_the_runs(make, ready, waiting, config):
    pod, run = waiting(age=90.0), make.run()
    patch = bind(run, ready, pod, config, make.now)
    assert (patch.name, patch.resource_version, patch.subresource) == (pod.name, pod.resource_version, None)
    assert patch.kind == kinds.POD
    metadata = patch.body["metadata"]
    assert metadata["uid"] == pod.uid
    assert metadata["labels"] == {LABEL_RUN: "run-a"}
    assert [owner["uid"] for owner in metadata["ownerReferences"]] == ["uid-run-a"]
    assert metadata["annotations"] == {**NOT_DISRUPTED, ANNOTATION_BOUND_AT: format_time(make.now)}


def test_the_pod_gets_the_annotations_of_its_plan(make, waiting, config):
    placements = NodePlacements(plans={"team": NodePlacement(annotations={"example.org/cost": "team"})})
    ready = RunReady(make.project(plan="team"), make.deployment(status={"plan": PLAN}))
    patch = bind(make.run(), ready, waiting(), replace(config, placements=placements), make.now)
    assert patch.body["metadata"]["annotations"]["example.org/cost"] == "team"


def bound(make, waiting, age=3000, since=1.0, **more):
    when = format_time(make.now - timedelta(seconds=since))
    metadata = {"annotations": {ANNOTATION_BOUND_AT: when}, "ownerReferences": [{"uid": "uid-run-a"}]}
    return waiting(
        age=age, labels={LABEL_RUN: "run-a"}, metadata=metadata, conditions=make.scheduled(age - 1), **more
    )


def test_the_deadline_begins_with_the_run(make, ready, waiting, config):
    fresh = bind(make.run(), ready, waiting(age=0), config, make.now).body["spec"]["activeDeadlineSeconds"]
    old = bind(make.run(), ready, waiting(age=3000), config, make.now).body["spec"]["activeDeadlineSeconds"]
    assert old == fresh + 3000
    pod = bound(make, waiting, since=0)
    assert waited_seconds(pod) == 3000
    assert waited_seconds(bound(make, waiting, age=0, since=0)) == 0
    assert waited_seconds(bound(make, waiting, since=0, startTime=None)) == 0
    assert waited_seconds(make.pod("run-a", startTime=make.ago(50))) == 0


def test_the_deadline_has_the_timeout_of_the_crew_and_the_time_for_answers(make, waiting, config):
    project = make.project(run={"timeout": "90s", "askTimeout": "70s"})
    for deployment in (make.deployment(status={"plan": {**PLAN, "timeout": "50s"}}), make.deployment()):
        patch = bind(make.run(), RunReady(project, deployment), waiting(age=0), config, make.now)
        cold = deadline(make.run(), deployment, project, config)
        assert patch.body["spec"]["activeDeadlineSeconds"] == cold + 70


def test_the_start_timeout_begins_with_the_run(make, waiting, config):
    assert startup.check(bound(make, waiting), make.now, config.timing).outcome is None
    late = bound(make, waiting, since=config.timing.start_timeout + 31)
    assert startup.check(late, make.now, config.timing).outcome is not None


def test_a_bound_run_is_not_recorded_before_its_claim(make, waiting, config):
    decision = decide(
        ObservedRun(make.run(), make.project(), make.deployment(), bound(make, waiting)), make.now, config
    )
    assert (decision.status, decision.delete) == (None, ())
    assert decision.requeue_after


def test_a_bound_pod_that_ends_unclaimed_gives_the_run_back(make, waiting, config):
    ended = bound(make, waiting, phase="Failed", containerStatuses=make.ended(code=137))
    run = make.run()
    seen = ObservedRun(run, make.project(), make.deployment(), ended)
    decision = decide(seen, make.now, config)
    assert [(child.name, child.uid) for child in decision.delete] == [("warm-a", "uid-warm-a")]
    assert decision.status is None
    recorded = make.run(status={"pod": {"name": "warm-a", "uid": "uid-warm-a"}})
    given_back = decide(replace(seen, run=recorded), make.now, config)
    assert (given_back.status["phase"], given_back.status["pod"]) == ("Pending", None)
    assert given_back.delete == ()


@pytest.mark.parametrize("spec", [{"project": "demo", "cancel": True}])
def test_a_canceled_run_is_not_given_back(make, waiting, config, spec):
    ended = bound(make, waiting, phase="Failed", containerStatuses=make.ended(code=79))
    seen = ObservedRun(make.run(**spec), make.project(), make.deployment(), ended)
    assert decide(seen, make.now, config).status["phase"] == "Canceled"


def test_a_claimed_run_whose_pod_ends_is_not_given_back(make, waiting, config):
    ended = bound(make, waiting, phase="Failed", containerStatuses=make.ended(code=137))
    run = make.run(status={"claim": {"podUid": "uid-warm-a", "time": "2026-11-21T11:59:59Z"}})
    decision = decide(ObservedRun(run, make.project(), make.deployment(), ended), make.now, config)
    assert (decision.status["phase"], decision.status["error"]["reason"]) == ("Failed", "RunnerLost")
    assert decision.status["pod"] == {"name": "warm-a", "uid": "uid-warm-a"}


def test_the_backstop_of_a_claimed_run_does_not_contain_the_wait(make, waiting, config):
    """A run of a pod that waited long is not given more time than another."""
    seconds = 1000
    run = make.run(status={"claim": {"podUid": "uid-warm-a", "time": format_time(make.now)}})
    old = bound(make, waiting, age=3000, since=0, spec={"activeDeadlineSeconds": 3000 + seconds})
    decision = decide(
        ObservedRun(run, make.project(), make.deployment(), old), make.now + timedelta(seconds=1), config
    )
    assert decision.requeue_after == seconds + config.timing.node_lost_after - 1


def test_the_token_of_a_waiting_pod_is_not_a_runs(make, ready, source, config):
    from controller.run.warm.pod import build

    body = build(source, "warm-demo-1", config, make.now.timestamp())
    env = {one["name"]: one.get("value") for one in body["spec"]["containers"][0]["env"]}
    token = pod_tokens.verify(config.token_keys, env["CREWYARD_TOKEN"], make.now.timestamp())
    assert (token.kind, token.name, token.uid) == ("warm", "warm-demo-1", "uid-demo")
    assert "CREWYARD_RUN" not in env and "CREWYARD_RUN_UID" not in env
    assert Pod(body).run is None and Pod(body).warm


@pytest.mark.parametrize(
    ("change", "waits"),
    [
        ({}, True),
        ({"conditions": []}, True),
        ({"labels": {LABEL_RUN: "run-b"}}, False),
        ({"metadata": {"uid": "of-another-pod"}}, False),
        ({"metadata": {"deletionTimestamp": "2026-11-21T12:00:00Z"}}, False),
        ({"phase": "Failed"}, False),
    ],
)
def test_a_pod_that_changed_is_taken_only_if_it_still_waits(waiting, change, waits):
    assert still_waits(waiting(**change), waiting()) is waits
