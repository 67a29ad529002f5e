"""Which pods of a Project wait for a build, which build gets one, and what it gets."""

import json
from dataclasses import replace
from datetime import timedelta

import pytest

from controller.deployment import pod
from controller.deployment.steps import ANNOTATION_STEP, build_steps, stages_of
from controller.deployment.warm import binding
from controller.deployment.warm.decide import ENDED_EVENT, ENDED_SECONDS, BuilderPool, decide
from controller.deployment.warm.template import build, pod_name, template
from controller.runtime.decision import ObjectEvent
from crds import kinds
from crds.names import LABEL_DEPLOYMENT, LABEL_WARM_BUILDER
from crds.objects import Pod

NAMES = ["warm-demo-1-a1", "warm-demo-2-a1", "warm-demo-3-a1"]
GIT = {"url": "https://git.example.org/crew.git", "commit": "1" * 40}
OWN = {"git": {"url": GIT["url"], "secretRef": {"name": "git"}}}


@pytest.fixture
def source(make, secured):
    return template(make.project(source=OWN), {"git": "uid/1"}, secured)


@pytest.fixture
def waiting(make, source):
    def waiting(name, age=60, fingerprint=source.fingerprint, **more):
        labels = {LABEL_WARM_BUILDER: fingerprint, **more.pop("labels", {})}
        return make.waiting(name, "assemble", labels, age, None, **more)

    return waiting


@pytest.fixture
def look(make, secured, source):
    def look(pods, size=2, source=source, now=make.now):
        decision = decide(BuilderPool(size, source, pods), NAMES, now, secured)
        created = [child.name for child in decision.create]
        return created, sorted(child.name for child in decision.delete), decision

    return look


@pytest.fixture
def first(make, secured):
    """Return the pod that a build would create."""

    def first(step=1, source=None, **project):
        owner = make.project(**{"source": OWN, **project})
        deployment = make.deployment(built=False, source=source or {"git": GIT})
        body = pod.assemble(deployment, owner, "dep-a-a1", step, secured, make.now.timestamp(), "key")
        return deployment, owner, body

    return first


def test_missing_pods_are_created_for_the_project(look, waiting):
    created, deleted, decision = look([waiting("warm-demo-0-a1")])
    assert (created, deleted) == (["warm-demo-1-a1"], [])
    body = decision.create[0].body
    assert decision.create[0].kind == kinds.POD
    assert LABEL_DEPLOYMENT not in body["metadata"]["labels"]
    assert [owner["kind"] for owner in body["metadata"]["ownerReferences"]] == ["Project"]
    assert "activeDeadlineSeconds" not in body["spec"]
    assert body["spec"]["containers"][0]["command"][-1] == "wait"


def test_a_full_pool_is_left_alone_and_a_surplus_is_deleted_youngest_first(look, waiting):
    created, deleted, decision = look([waiting("a"), waiting("b")])
    assert (created, deleted, decision.requeue_after) == ([], [], 30)
    assert look([waiting("a", 50), waiting("b", 40), waiting("c", 30)])[1] == ["c"]


@pytest.mark.parametrize("change", [{"fingerprint": "of-another-secret"}, {"age": 3600}])
def test_a_stale_pod_is_deleted_before_its_successor_is_created(look, waiting, change):
    stale = waiting("a", **change)
    created, deleted, decision = look([stale, waiting("b")])
    assert (created, deleted) == ([], ["a"])
    assert decision.delete[0].resource_version == stale.resource_version
    assert decision.requeue_after < 1


def test_all_pods_are_deleted_where_none_should_wait(look, waiting):
    created, deleted, decision = look([waiting("a"), waiting("b")], size=0, source=None)
    assert (created, deleted, decision.requeue_after) == ([], ["a", "b"], None)


def test_a_missing_template_is_looked_for_again(look, waiting):
    """No event tells that the Project may use its Secret now."""
    created, deleted, decision = look([waiting("a")], source=None)
    assert (created, deleted, decision.requeue_after) == ([], ["a"], 30)


def test_a_pod_that_ended_is_replaced_after_a_pause(look, waiting, make):
    ended = make.ended("assemble", 1, reason="Error", finishedAt=make.ago(10))
    pods = [waiting("a", phase="Failed", containerStatuses=ended), waiting("b")]
    created, deleted, decision = look(pods)
    assert (created, deleted, decision.requeue_after) == ([], [], 30)
    _, deleted, decision = look(pods, now=make.now + timedelta(seconds=ENDED_SECONDS - 10.5))
    assert (deleted, decision.requeue_after) == ([], 0.5)
    created, deleted, decision = look(pods, now=make.now + timedelta(seconds=ENDED_SECONDS - 10))
    assert (created, deleted) == ([], ["a"])
    message = "Pod a ended while it waited for a build: Error"
    assert decision.delete[0].events == (ObjectEvent(ENDED_EVENT, message, True),)
    assert (decision.delete[0].kind, decision.delete[0].uid) == (kinds.POD, pods[0].uid)


@pytest.mark.parametrize(("status", "reason"), [({"reason": "Evicted"}, "Evicted"), ({}, "no reason given")])
def test_a_pod_that_ended_without_its_container_names_its_own_reason(look, waiting, status, reason):
    pods = [waiting("a", age=120, phase="Failed", containerStatuses=[], **status)]
    _, _, decision = look(pods)
    assert decision.delete[0].events[0].message.endswith(f": {reason}")


def test_a_pod_is_looked_at_when_it_gets_too_old(look, waiting, make, secured):
    pods = [waiting("a", age=secured.limits.warm_seconds - 1), waiting("b")]
    _, deleted, decision = look(pods, now=make.now + timedelta(seconds=0.5))
    assert (deleted, decision.requeue_after) == ([], 0.5)


def test_the_deletion_of_a_surplus_is_no_event(look, waiting):
    _, _, decision = look([waiting("a"), waiting("b", age=30)], size=1)
    assert [(child.name, child.events) for child in decision.delete] == [("b", ())]


def test_the_fingerprint_follows_secrets_and_pod(make, secured, source):
    project = make.project(source=OWN)
    assert template(project, {"git": "uid/1"}, secured).fingerprint == source.fingerprint
    assert template(project, {"git": "uid/2"}, secured).fingerprint != source.fingerprint
    assert (
        template(project, {"git": "uid/1"}, replace(secured, service_image="other")).fingerprint
        != source.fingerprint
    )


def test_a_waiting_pod_has_the_credentials_of_the_first_pod_and_no_build(first, source, secured, make):
    _, _, body = first()
    waiting = build(source, NAMES[0], secured, make.now.timestamp())
    theirs, ours = ({e["name"] for e in b["spec"]["containers"][0]["env"]} for b in (body, waiting))
    assert theirs - ours == {"CREWYARD_DEPLOYMENT", "CREWYARD_BUILD"}
    assert ours - theirs == {"CREWYARD_BUILDER"}
    specs = [{**b["spec"], "containers": None, "activeDeadlineSeconds": None} for b in (body, waiting)]
    assert specs[0] == specs[1]


def test_a_bound_pod_is_the_first_pod_of_its_build(first, waiting, make, secured):
    deployment, _, body = first()
    taken = waiting(NAMES[0], age=100)
    patch = binding.bind(body, taken, make.now)
    assert (patch.name, patch.resource_version) == (taken.name, taken.resource_version)
    assert (patch.kind, patch.subresource, patch.body["metadata"]["uid"]) == (kinds.POD, None, taken.uid)
    assert patch.body["spec"]["activeDeadlineSeconds"] == body["spec"]["activeDeadlineSeconds"] + 100
    metadata = patch.body["metadata"]
    merged = {**taken.metadata, **metadata, "labels": {**taken.labels, **metadata["labels"]}}
    bound = Pod({**taken.raw, "metadata": merged})
    assert deployment.uid in bound.owner_uids and bound.assigned == make.now
    steps = build_steps([bound], bound.name)
    assert steps.latest.pod is bound and steps.next_name("dep-a", "a") == ("dep-a-a2", 2)
    assert stages_of(deployment, steps)[0]["seconds"] == 60
    variables = binding.assigned_variables(bound)
    assert variables["CREWYARD_DEPLOYMENT"] == "dep-a" and json.loads(variables["CREWYARD_BUILD"])
    assert set(variables) == set(binding.BUILD_VARIABLES)
    assert binding.assigned_variables(taken) is None
    assert binding.assigned_variables(waiting("b", labels={LABEL_DEPLOYMENT: "dep-a"})) is None


@pytest.mark.parametrize("recorded", ["warm-demo-1-a1", "warm-demo-2-a1"])
def test_of_two_first_pods_the_recorded_one_counts(waiting, recorded):
    """Two controllers may each have bound one."""
    step = {"annotations": {ANNOTATION_STEP: "1"}}
    pods = [waiting(name, metadata=step) for name in ("warm-demo-1-a1", "warm-demo-2-a1")]
    steps = build_steps(pods, recorded)
    assert (steps.latest.pod.name, steps.total) == (recorded, 1)


def test_a_lost_bound_pod_counts_as_a_failed_step():
    steps = build_steps([], pod_name("demo", "abc"))
    assert steps.latest.pod is None and steps.total == 1


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({}, True),
        ({"source": {"archive": {"upload": "upl_1"}}}, True),
        ({"source": {"git": {**GIT, "url": "https://elsewhere.example.org/crew.git"}}}, False),
        ({"step": 2}, False),
    ],
)
def test_only_the_first_pod_of_the_projects_own_source_is_replaced(first, change, expected):
    assert binding.suits(*first(**change)) is expected


@pytest.mark.parametrize(
    "change",
    [
        {"fingerprint": "other"},
        {"age": 3600},
        {"phase": "Pending", "containerStatuses": []},
        {"labels": {LABEL_DEPLOYMENT: "dep-b"}},
        {"metadata": {"deletionTimestamp": "2026-11-21T12:00:00Z"}},
    ],
)
def test_a_pod_that_does_not_wait_gets_no_build(waiting, source, make, change):
    pods = [waiting("b", age=20), waiting("c", age=40)]
    assert binding.oldest(pods, source.fingerprint, make.now, 3600).name == "c"
    unsuited = waiting("a", **{"age": 50, **change})
    assert binding.oldest([unsuited], source.fingerprint, make.now, 3600) is None


def test_a_name_of_a_pod_is_valid_for_the_longest_project():
    assert len(pod_name("p" * 52, "0" * 10)) <= 63
