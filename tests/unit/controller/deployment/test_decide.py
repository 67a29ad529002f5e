"""Decisions about one Deployment from the state of its pods: each reason and each next step."""

import json
from dataclasses import replace
from datetime import timedelta

import pytest

import build.settings
from build.settings import read_settings
from controller import owner
from controller.build_proof.proof import prove, proven_pod
from controller.build_proof.proven_digests import ProvenDigests
from controller.deployment import status
from controller.deployment.build_result import BuildFailure, DependenciesMissing, ImageBuilt
from controller.deployment.deadlines import STOP_GRACE_SECONDS
from controller.deployment.decide import ObservedDeployment, decide
from controller.deployment.pod import ANNOTATION_BASE, ANNOTATION_SOURCE_KEY, assemble, dependencies
from controller.deployment.pod_rejected import pod_refused
from controller.deployment.steps import ANNOTATION_STEP, build_steps
from controller.runtime.decision import Create, Decision, Delete, ObjectEvent
from crds import kinds
from crds.objects import Deployment
from plan.keys import base_keys

KEY = "5c" * 32
OTHER_KEY = "7d" * 32
NEEDS = {
    "outcome": "dependencies",
    "plan": {},
    "dependencies_key": KEY,
    "dependencies_image": f"registry:5000/team/crews/demo:deps-{KEY}",
    "base_image": "b",
}
DIGEST = "sha256:" + "de" * 32
ASSEMBLING = ("Assembling", "Fetching and checking the source, and appending it to its image.")
INSTALLING = ("InstallingDependencies", "Installing the dependencies.")
BUILT = {
    "outcome": "built",
    "image": "registry:5000/team/crews/demo@sha256:" + "ab" * 32,
    "plan": {"framework": "python", "timeout": None},
    "tree": "t",
    "build_key": "k",
    "dependencies_key": KEY,
    "dependencies_digest": DIGEST,
}


class Steps:
    """Build pods, one after the other."""

    def __init__(self, make):
        self.make, self.pods = make, []

    def pod(self, kind, *, phase="Succeeded", containers=(), ago=60, lost=False, **more):
        number = 1 + sum(pod.name.startswith(f"dep-a-{kind}") for pod in self.pods)
        name = f"dep-a-{kind}{number}"
        meta = {
            "ownerReferences": [{"uid": "uid-dep-a"}],
            "annotations": {ANNOTATION_STEP: str(len(self.pods) + 1)},
        }
        statuses = [
            {"name": n, "state": {"terminated": {"finishedAt": self.make.ago(ago), **state}}}
            for n, state in containers
        ]
        made = self.make.pod(name, metadata=meta, phase=phase, containerStatuses=statuses, **more)
        self.pods.append(made)
        return self

    def assemble(self, message=None, code=0, phase="Succeeded", **more):
        text = json.dumps(message) if isinstance(message, dict) else (message or "")
        return self.pod(
            "a", phase=phase, containers=[("assemble", {"exitCode": code, "message": text})], **more
        )

    def dependencies(self, container="push", code=0, message="", phase="Succeeded", **more):
        order = ("source", "kaniko", "push")
        states = [(n, {"exitCode": 0}) for n in order[: order.index(container)]]
        states.append((container, {"exitCode": code, "message": message}))
        return self.pod("d", phase=phase, containers=states, **more)


@pytest.fixture
def steps(make):
    return Steps(make)


@pytest.fixture
def observe(make):
    def observe(pods=(), project="there", recorded=None, queue="", before=None, **status):
        found = {"buildPod": recorded} if recorded else {}
        deployment = make.deployment(built=False, status={**found, **status})
        return ObservedDeployment(
            deployment, make.project() if project else None, list(pods), queue, **(before or {})
        )

    return observe


@pytest.fixture
def look(observe, make, config):
    def look(*pods, **state):
        return decide(observe(*pods, **state), make.now, config)

    return look


@pytest.fixture
def adopted():
    """Return the patch that makes the Project an owner of its Deployment."""

    def adopted(seen):
        return owner.adoption(kinds.DEPLOYMENT, seen.deployment, seen.project)

    return adopted


@pytest.fixture
def failed(make):
    """Return the whole decision that fails a build."""

    def failed(seen, *failure, **more):
        error = BuildFailure(*failure)
        return Decision(
            status=status.failed(seen.deployment, error, make.now) | more,
            events=(ObjectEvent(error.reason, error.message, True),),
            enqueue=(("projects", "demo"),),
        )

    return failed


@pytest.fixture
def first_assemble(make, config):
    """Return the creation of a build's first pod."""

    def first_assemble(seen):
        body = assemble(
            seen.deployment,
            seen.project,
            "dep-a-a1",
            1,
            config,
            make.now.timestamp(),
            seen.source_key,
            seen.proven.as_request({}),
        )
        return Create(kinds.POD, body, (ObjectEvent("Building", "The build has started."),))

    return first_assemble


@pytest.fixture
def proven(config):
    """Return a Deployment with a proof of its status."""

    def proven(deployment):
        proof = prove(config.token_key, config.namespace, deployment, "uid-pod", deployment.status)
        return Deployment({**deployment.raw, "status": {**deployment.status, "proof": proof}})

    return proven


@pytest.fixture
def pod_of(make, config):
    """Return the pod that made the image, by the proof in the status that a decision writes to dep-a."""

    def pod_of(decision, **before):
        return proven_pod(
            config.token_keys,
            config.namespace,
            make.deployment(built=False, status={**before, **decision.status}),
        )

    return pod_of


def request_of(decision):
    """Return the request in the environment of the pod that is created."""
    spec = decision.create[0].body["spec"]
    return json.loads(next(e["value"] for e in spec["containers"][0]["env"] if e["name"] == "CREWYARD_BUILD"))


def created(decision):
    return [child.name for child in decision.create]


def recorded_events(decision):
    """Events of the created pods, independent of the status."""
    return [note.reason for child in (*decision.create, *decision.delete) for note in child.events]


def test_build_starts_with_assemble(observe, make, config, adopted, first_assemble):
    seen = observe(before={"source_key": "k"})
    assert decide(seen, make.now, config) == Decision(
        create=(first_assemble(seen),),
        status={**status.building(seen.deployment, "dep-a-a1", *ASSEMBLING, make.now), "sourceKey": "k"},
        after=adopted(seen),
    )


def test_build_waits_in_the_queue(observe, make, config, adopted):
    seen = observe(queue="Waiting for another build of project demo.", before={"source_key": "k"})
    waits = status.pending(seen.deployment, "Queued", seen.wait_reason, make.now)
    assert decide(seen, make.now, config) == Decision(
        status={**waits, "sourceKey": "k"}, after=adopted(seen), requeue_after=15.0
    )


def test_build_waits_for_its_project(observe, make, config):
    seen = observe(project=None)
    message = "Project demo does not exist; create it."
    waits = status.pending(seen.deployment, "ProjectNotFound", message, make.now)
    assert decide(seen, make.now, config) == Decision(status={**waits, "buildPod": None})


@pytest.mark.parametrize("project", ["there", None])
def test_a_canceled_build_fails_and_creates_nothing(make, config, steps, failed, project):
    deployment = make.deployment(built=False, cancel=True)
    pods = steps.assemble(BUILT).pods
    seen = ObservedDeployment(deployment, make.project() if project else None, pods)
    assert decide(seen, make.now, config) == failed(
        seen, "Canceled", "The build was canceled.", "Deploy again to build this source."
    )


@pytest.mark.parametrize(("given", "stored"), [({}, "Ask for tides"), ({"message": "Again"}, None)])
def test_a_commit_without_a_message_gets_its_subject(make, config, steps, given, stored):
    deployment = make.deployment(built=False, **given)
    pods = steps.assemble({**BUILT, "message": "Ask for tides"}).pods
    decision = decide(ObservedDeployment(deployment, make.project(), pods), make.now, config)
    assert decision.status["image"] and decision.status.get("message") == stored


def test_image_of_the_same_source_is_reused_without_a_pod(observe, make, config, proven, pod_of, adopted):
    outputs = {
        "plan": {"framework": "python"},
        "tree": "t",
        "buildKey": "b",
        "dependenciesKey": "d",
        "dependenciesDigest": DIGEST,
    }
    reusable = proven(make.deployment("dep-b", status={**outputs, "sourceKey": "k", "order": 3}))
    seen = observe(before={"source_key": "k", "reusable": reusable})
    decision = decide(seen, make.now, config)
    assert decision == Decision(
        status={
            **status.reused(seen.deployment, reusable, "k", make.now),
            "proof": decision.status["proof"],
        },
        after=adopted(seen),
        events=(ObjectEvent("Reused", "Reusing the image of dep-b."),),
        enqueue=(("projects", "demo"),),
    )
    assert {**outputs, "image": reusable.image, "sourceKey": "k"}.items() <= decision.status.items()
    assert "order" not in decision.status
    # The proof is of the deployment that reuses it, and still names the pod that made the image.
    assert decision.status["proof"] != reusable.status["proof"]
    assert pod_of(decision) == "uid-pod"
    built = next(c for c in decision.status["conditions"] if c["type"] == "Built")
    assert (built["status"], built["reason"]) == ("True", "Reused") and "dep-b" in built["message"]


def test_image_without_a_proof_is_reused_without_one(look, make):
    reusable = make.deployment("dep-b", status={"proof": "forged"})
    assert look(before={"source_key": "k", "reusable": reusable}).status["proof"] is None
    assert created(look(before={"reusable": reusable})) == ["dep-a-a1"]


def test_deployment_waits_for_a_running_build_of_the_same_source(observe, make, config, adopted):
    seen = observe(before={"source_key": "k", "in_progress": make.deployment("dep-b", built=False)})
    message = "dep-b is being built from the same source; its image will be reused."
    waits = status.pending(seen.deployment, "SameSourceBuilding", message, make.now)
    assert decide(seen, make.now, config) == Decision(
        status={**waits, "sourceKey": "k"}, after=adopted(seen), requeue_after=15.0
    )


def test_source_key_is_recorded_only_when_the_build_starts(look, steps):
    assert look(before={"source_key": "k"}).status["sourceKey"] == "k"
    assert look(sourceKey="old").status["sourceKey"] is None
    assert "sourceKey" not in look(steps.assemble(NEEDS).pods, before={"source_key": "new"}).status
    first = look(before={"source_key": "k"}).create[0].body["metadata"]["annotations"]
    steps.pods[0].raw["metadata"]["annotations"].update(first)
    assert look(steps.pods).status["sourceKey"] == "k"
    assert "sourceKey" not in look(steps.pods, sourceKey="k").status


def test_deleted_deployment_or_project_stops_the_build_pods(make, config, steps):
    steps.pod("a", phase="Running", conditions=make.scheduled(5))
    going = make.deployment(built=False, metadata={"deletionTimestamp": make.ago(1)})
    decision = decide(ObservedDeployment(going, make.project(), steps.pods), make.now, config)
    assert [(deletion.name, deletion.grace_seconds) for deletion in decision.delete] == [("dep-a-a1", 5)]
    alone = make.deployment(built=False, status={"buildPod": "dep-a-a1"})
    decision = decide(ObservedDeployment(alone, None, steps.pods), make.now, config)
    assert len(decision.delete) == 1
    assert decision.status["phase"] == "Pending" and decision.status["buildPod"] is None


@pytest.mark.parametrize(
    ("status", "seconds", "words"),
    [
        (
            [{"type": "PodScheduled", "status": "False", "message": "0/3 nodes"}],
            3601,
            "no node could schedule",
        ),
        ("ImagePullBackOff", 91, "cannot be pulled"),
        ("CreateContainerConfigError", 91, "cannot start"),
    ],
)
def test_unstartable_pod_fails_the_build_with_its_reason(look, config, make, status, seconds, words):
    meta = {"creationTimestamp": make.ago(seconds)}
    stuck = isinstance(status, str)
    conditions = make.scheduled(seconds) if stuck else status
    state = {"waiting": {"reason": status, "message": "reported by the node"}} if stuck else {"waiting": {}}
    pod = make.pod(
        "dep-a-a1",
        metadata={**meta, "ownerReferences": [{"uid": "uid-dep-a"}], "annotations": {ANNOTATION_STEP: "1"}},
        phase="Pending",
        conditions=conditions,
        containerStatuses=[{"name": "assemble", "state": state}],
    )
    decision = look([pod])
    error = decision.status["error"]
    assert decision.status["phase"] == "Failed"
    assert words in error["message"] and error["hint"]
    assert decision.delete == ()
    # The next decision deletes the pod: a controller that ends between the two keeps the reason.
    deletion = Delete(kinds.POD, "dep-a-a1", "uid-dep-a-a1", STOP_GRACE_SECONDS)
    assert look([pod], **decision.status).delete == (deletion,)
    assert decision.events == (ObjectEvent("BuildFailed", error["message"], True),)
    soon = decide(
        ObservedDeployment(make.deployment(built=False), make.project(), [pod]),
        make.now - timedelta(seconds=10),
        config,
    )
    assert soon.status["phase"] == "Building" and not soon.delete


def test_refused_pod_is_retried_for_an_hour_then_fails(make, config):
    # It has been in the queue for hours: the hour begins with the first refusal.
    long_ago = {"creationTimestamp": make.ago(9000)}

    def at(seconds, status, final=False):
        seen = ObservedDeployment(
            make.deployment(built=False, metadata=long_ago, status=status), make.project(), []
        )
        return pod_refused(seen, "exceeded quota", final, make.now + timedelta(seconds=seconds), config)

    first = at(0, {})
    assert first.status["phase"] == "Pending" and 0 < first.requeue_after <= 10
    assert [note.reason for note in first.events] == ["PodRefused"]
    again = at(3590, first.status)
    assert again.status["phase"] == "Pending" and not again.events
    given_up = at(3601, again.status)
    assert given_up.status["error"]["reason"] == "BuildFailed"
    assert "exceeded quota" in given_up.status["error"]["message"]
    # Any accepted pod in between restarts the hour.
    building = make.deployment(built=False, status=first.status)
    between = status.building(building, "dep-a-a1", "Assembling", "m", make.now)
    assert at(9999, between).status["phase"] == "Building"
    assert at(0, {}, final=True).status["phase"] == "Failed"


@pytest.mark.parametrize("more", [{"reason": "DeadlineExceeded"}, {}])
def test_timeout_and_oom_keep_the_end_of_the_log(look, steps, more):
    ended = {"exitCode": 137, "message": "the last line\n"}
    if not more:
        ended["reason"] = "OOMKilled"
    steps.assemble(NEEDS).pod("d", phase="Failed", containers=[("kaniko", ended)], **more)
    error = look(steps.pods).status["error"]
    assert error["log"] == "the last line\n" and error["hint"]
    assert error["reason"] == ("BuildTimeout" if more else "BuildOutOfMemory")


def test_missing_dependency_image_is_built_before_assemble_repeats(observe, steps, make, config, adopted):
    seen = observe(steps.assemble(NEEDS).pods, recorded="dep-a-a1")
    now = make.now.timestamp()
    missing = DependenciesMissing(KEY, NEEDS["dependencies_image"])
    body = dependencies(seen.deployment, seen.project, "dep-a-d1", 2, missing, config, now)
    building = status.building(seen.deployment, "dep-a-d1", *INSTALLING, make.now)
    assert decide(seen, make.now, config) == Decision(
        create=(Create(kinds.POD, body),),
        status={**building, "stages": [{"name": "queued", "seconds": 0.0}]},
        after=adopted(seen),
    )
    steps.dependencies(message=json.dumps({"outcome": "pushed", "key": KEY, "digest": DIGEST}))
    seen = observe(steps.pods, recorded="dep-a-d1", before={"source_key": "k"})
    images = seen.proven.as_request({KEY: DIGEST})
    body = assemble(seen.deployment, seen.project, "dep-a-a2", 3, config, now, "k", images)
    again = decide(seen, make.now, config)
    building = status.building(seen.deployment, "dep-a-a2", *ASSEMBLING, make.now)
    assert again == Decision(
        create=(Create(kinds.POD, body),),
        status={**building, "stages": again.status["stages"]},
        after=adopted(seen),
    )


def base_of(created):
    """Return the image of the container that installs, and the request's `dependencies`."""
    (install,) = [c for c in created.create[0].body["spec"]["initContainers"] if c["name"] != "source"]
    return install["image"], request_of(created)["dependencies"]


@pytest.fixture
def base_key(config):
    (key, *_) = base_keys(config.base_images)
    return key


def with_base(key, digest):
    return {**NEEDS, "base": {"key": key, "digest": digest}}


def test_dependencies_are_installed_in_a_proven_base_image(look, steps, config, base_key):
    proven = {"proven": ProvenDigests(shared={base_key: DIGEST})}
    decision = look(steps.assemble(with_base(base_key, DIGEST)).pods, before=proven)
    image, request = base_of(decision)
    assert image == f"{config.repository('demo')}@{DIGEST}"
    assert request == {"key": KEY, "base": {"key": base_key, "digest": DIGEST}}
    steps.dependencies(message=json.dumps(BUILT))
    steps.pods[-1].raw["metadata"]["annotations"][ANNOTATION_BASE] = f"{base_key}@{DIGEST}"
    done = look(steps.pods)
    assert (done.status["baseKey"], done.status["baseDigest"]) == (base_key, DIGEST)


def test_code_on_known_dependencies_keeps_their_base_image(look, steps, base_key):
    base = {"baseKey": base_key, "baseDigest": DIGEST}
    before = {"proven": ProvenDigests(bases={BUILT["dependencies_digest"]: base})}
    done = look(steps.assemble(BUILT).pods, before=before)
    assert {name: done.status[name] for name in base} == base


def test_a_base_image_that_no_build_proves_is_not_used(look, steps, config, base_key):
    other = "sha256:" + "99" * 32
    for proven, reported in (({}, (base_key, DIGEST)), ({base_key: other}, (base_key, DIGEST)),
                             ({OTHER_KEY: DIGEST}, (OTHER_KEY, DIGEST))):  # fmt: skip
        steps.pods.clear()
        before = {"proven": ProvenDigests(shared=proven)}
        image, request = base_of(look(steps.assemble(with_base(*reported)).pods, before=before))
        assert (image, request) == (config.kaniko_image, {"key": KEY})


def test_a_missing_base_image_is_built_first_and_once(look, steps, config, base_key):
    image, request = base_of(look(steps.assemble(with_base(base_key, "")).pods))
    assert (image, request) == (config.kaniko_image, {"key": base_key})
    steps.dependencies(message=pushed(base_key))
    assert created(look(steps.pods)) == ["dep-a-a2"]
    steps.assemble(with_base(base_key, DIGEST))
    assert base_of(look(steps.pods))[1]["base"] == {"key": base_key, "digest": DIGEST}
    steps.pods.pop()
    steps.assemble(with_base(base_key, ""))
    assert base_of(look(steps.pods)) == (config.kaniko_image, {"key": KEY})


def test_base_fields_are_those_of_the_pod_that_pushed(look, steps, base_key):
    """An install pod ends with an error, and Kaniko builds the image then."""
    steps.assemble(with_base(base_key, DIGEST)).dependencies("push", 75, "refused", phase="Failed")
    steps.pods[-1].raw["metadata"]["annotations"][ANNOTATION_BASE] = f"{base_key}@{DIGEST}"
    steps.assemble(NEEDS).dependencies(message=json.dumps(BUILT))
    assert "baseKey" not in look(steps.pods).status
    steps.pods.pop()
    steps.dependencies(message=json.dumps({"outcome": "pushed", "key": KEY, "digest": DIGEST}))
    assert "baseKey" not in look(steps.assemble(BUILT).pods).status
    steps.pods[-2].raw["metadata"]["annotations"][ANNOTATION_BASE] = f"{base_key}@{DIGEST}"
    assert look(steps.pods).status["baseKey"] == base_key


@pytest.mark.parametrize("container", ["install", "source"])
def test_kaniko_builds_where_the_node_cannot_pull_the_base_image(look, steps, config, base_key, container):
    steps.assemble(with_base(base_key, DIGEST)).pod("d", phase="Pending", ago=600)
    stuck = steps.pods[-1]
    stuck.raw["metadata"]["annotations"][ANNOTATION_BASE] = f"{base_key}@{DIGEST}"
    waiting = {"reason": "ImagePullBackOff", "message": "no basic auth credentials"}
    scheduled = {"type": "PodScheduled", "status": "True", "lastTransitionTime": steps.make.ago(600)}
    stuck.raw["status"] |= {
        "conditions": [scheduled],
        "initContainerStatuses": [{"name": container, "image": "i", "state": {"waiting": waiting}}],
    }
    decision = look(steps.pods)
    assert created(decision) == ["dep-a-d2"]
    assert base_of(decision) == (config.kaniko_image, {"key": KEY})
    assert [(one.name, one.uid) for one in decision.delete] == [(stuck.name, stuck.uid)]
    assert "no basic auth" in decision.create[0].events[0].message
    # Kaniko's own image, and a build whose first pod is gone: it fails.
    by_kaniko = [*steps.pods[:-1], stuck]
    del stuck.raw["metadata"]["annotations"][ANNOTATION_BASE]
    assert look(by_kaniko).status["error"]["message"].startswith("the image i cannot be pulled")
    stuck.raw["metadata"]["annotations"][ANNOTATION_BASE] = f"{base_key}@{DIGEST}"
    assert look([stuck]).status["error"]["message"].startswith("the image i cannot be pulled")


def test_without_the_setting_kaniko_builds_all(observe, steps, make, config, base_key):
    off = replace(config, install_in_base=False)
    before = {"proven": ProvenDigests(shared={base_key: DIGEST})}
    for digest in (DIGEST, ""):
        steps.pods.clear()
        seen = observe(steps.assemble(with_base(base_key, digest)).pods, before=before)
        decision = decide(seen, make.now, off)
        assert base_of(decision) == (config.kaniko_image, {"key": KEY})
        assert "install_in_base" not in request_of(decision)


def test_build_succeeds_with_the_image_that_its_pod_reports(observe, steps, make, config):
    seen = observe(steps.assemble(BUILT).pods, recorded="dep-a-a1")
    plan = {"framework": "python"}
    result = ImageBuilt(BUILT["image"], plan, "t", "k", KEY, DIGEST)
    stages = {"stages": [{"name": "queued", "seconds": 0.0}]}
    made = {**status.built(seen.deployment, result, make.now), "sourceKey": None}
    proof = prove(config.token_key, "crews", seen.deployment, "uid-dep-a-a1", made)
    invalid = BuildFailure(
        "ConfigInvalid",
        "the configuration has a value that a Deployment cannot store: see its Events",
        "Shorten names and lists in the configuration file.",
    )
    assert decide(seen, make.now, config) == Decision(
        status={**made, "proof": proof, **stages},
        fallback_status=status.failed(seen.deployment, invalid, make.now),
        events=(ObjectEvent("Built", f"The image is {BUILT['image']}."),),
        enqueue=(("projects", "demo"),),
    )


def test_accepted_image_has_a_proof_of_its_build(look, steps, pod_of):
    steps.assemble(BUILT).pods[0].raw["metadata"]["annotations"][ANNOTATION_SOURCE_KEY] = "real"
    done = look(steps.pods, sourceKey="forged")
    assert done.status["dependenciesDigest"] == DIGEST
    # Of the pods: others may write the status.
    assert done.status["sourceKey"] == "real"
    assert pod_of(done, sourceKey="forged") == steps.pods[0].uid


def test_image_of_a_dependencies_pod_is_that_of_its_settings(look, steps, pod_of):
    again = look(steps.assemble(NEEDS).pods, before={"source_key": "after"}).create[0]
    assert again.body["metadata"]["annotations"][ANNOTATION_SOURCE_KEY] == "after"
    steps.dependencies(message=json.dumps(BUILT))
    steps.pods[-1].raw["metadata"]["annotations"][ANNOTATION_SOURCE_KEY] = "after"
    done = look(steps.pods)
    assert (done.status["image"], done.status["sourceKey"]) == (BUILT["image"], "after")
    assert pod_of(done) == steps.pods[-1].uid


def test_source_key_is_that_of_the_pod_that_made_the_image(look, steps):
    """The settings of the Project may change while the dependencies are installed."""
    pushed = json.dumps({"outcome": "pushed", "key": KEY, "digest": DIGEST})
    steps.assemble(NEEDS).dependencies(message=pushed)
    steps.pods[0].raw["metadata"]["annotations"][ANNOTATION_SOURCE_KEY] = "before"
    again = look(steps.pods, before={"source_key": "after"}).create[0]
    assert again.body["metadata"]["annotations"][ANNOTATION_SOURCE_KEY] == "after"
    steps.assemble(BUILT)
    assert look(steps.pods).status["sourceKey"] is None
    steps.pods[-1].raw["metadata"]["annotations"][ANNOTATION_SOURCE_KEY] = "after"
    assert look(steps.pods).status["sourceKey"] == "after"


def test_a_pod_that_was_not_recorded_is_recorded_with_its_result(look, steps):
    pods = steps.assemble(BUILT).pods
    assert look(pods, buildPod=None).status["buildPod"] == "dep-a-a1"
    assert "buildPod" not in look(pods, buildPod="dep-a-a1").status


@pytest.mark.parametrize("digest", [None, "", "latest", "sha256:00", DIGEST + "\n"])
def test_image_of_a_pod_that_believed_tags_has_no_proof(look, steps, digest):
    result = {**BUILT, "dependencies_digest": digest}
    done = look(steps.assemble(result).pods)
    assert done.status["image"] == BUILT["image"] and done.status["proof"] is None
    assert "dependenciesDigest" not in done.status


def test_build_pod_gets_the_images_that_it_may_take(look):
    images = ProvenDigests({"b": {"image": DIGEST, "dependencies": DIGEST}}, {"d": DIGEST}, {"s": DIGEST})
    request = request_of(look(before={"proven": images}))
    request["source"]["archive"]["sha256"] = "a" * 64
    environment = {
        "CREWYARD_INTERNAL_URL": "http://api",
        "CREWYARD_TOKEN": "t",
        "CREWYARD_BUILD": json.dumps(request),
    }
    assert read_settings(environment).proven == build.settings.ProvenImages(
        {"b": build.settings.ProvenImage(DIGEST, DIGEST)}, {"d": DIGEST}, {"s": DIGEST}
    )


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        ({"outcome": "failed", "reason": "GitAuthFailed", "message": "m", "hint": "h"}, "GitAuthFailed"),
        ({"outcome": "failed", "reason": "ContextTooLarge", "message": "m"}, "ContextTooLarge"),
        ({"outcome": "failed", "reason": "EntrypointNotFound", "message": "m"}, "EntrypointNotFound"),
        ({"outcome": "failed", "reason": "Strange", "message": "m"}, "BuildFailed"),
    ],
)
def test_assemble_failure_is_final_with_reason_and_hint(look, steps, message, reason):
    decision = look(steps.assemble(message).pods)
    assert decision.status["phase"] == "Failed"
    assert decision.status["error"]["reason"] == reason
    assert decision.status["error"].get("hint") == message.get("hint")
    assert {c["type"]: c["status"] for c in decision.status["conditions"]} == {
        "Ready": "False",
        "Built": "False",
        "Stalled": "True",
    }


@pytest.mark.parametrize(
    ("log", "reason"),
    [
        ("ERROR: No matching distribution found for nosuch==1", "DependencyResolution"),
        ("ERROR: ResolutionImpossible", "DependencyResolution"),
        ("error building image: exit status 137", "BuildOutOfMemory"),
        ("cp: No space left on device", "BuildFailed"),
        ("error building image: something else", "BuildFailed"),
    ],
)
def test_kaniko_log_is_classified_and_stored(look, steps, log, reason):
    steps.assemble(NEEDS).dependencies("kaniko", 1, f"\x1b[36mINFO\x1b[0m\n{log}\n", phase="Failed")
    decision = look(steps.pods)
    assert decision.status["error"]["reason"] == reason
    assert decision.status["error"]["log"].startswith("INFO\n")
    assert log in decision.status["error"]["log"]
    assert decision.status["error"]["message"]


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ({"reason": "DeadlineExceeded"}, "BuildTimeout"),
        ({"reason": "Evicted", "message": "ephemeral local storage usage exceeds"}, "BuildFailed"),
    ],
)
def test_pod_failure_reason_is_classified(look, steps, more, reason):
    decision = look(steps.pod("a", phase="Failed", **more).pods)
    assert decision.status["error"]["reason"] == reason


NOTHING = "was running and produced no output"


@pytest.mark.parametrize(
    ("containers", "log"),
    [
        ([("source", {"exitCode": 0}), ("kaniko", {"exitCode": 1, "message": "Collecting"})], "Collecting"),
        ([("source", {"exitCode": 0}), ("kaniko", {"exitCode": 137})], f"container kaniko {NOTHING}"),
        ([("source", {"exitCode": 143})], f"container source {NOTHING}"),
        ([], "no container had started"),
    ],
)
def test_timed_out_build_names_the_running_container(look, steps, containers, log):
    steps.assemble(NEEDS).pod("d", phase="Failed", reason="DeadlineExceeded", containers=containers)
    assert look(steps.pods).status["error"]["log"] == log


def test_out_of_memory_container_fails_the_build(look, steps):
    steps.assemble(NEEDS).pod(
        "d", phase="Failed", containers=[("kaniko", {"exitCode": 1, "reason": "OOMKilled"})]
    )
    assert look(steps.pods).status["error"]["reason"] == "BuildOutOfMemory"


def test_failed_push_is_retried_and_then_reported(look, steps):
    steps.assemble(NEEDS)
    for attempt in range(3):
        steps.dependencies("push", 1, "registry refused", phase="Failed")
        assert created(look(steps.pods)) == [f"dep-a-a{attempt + 2}"]
        steps.assemble(NEEDS)
        assert created(look(steps.pods)) == [f"dep-a-d{attempt + 2}"]
    steps.dependencies("push", 1, "registry refused", phase="Failed")
    decision = look(steps.pods)
    assert decision.status["error"]["reason"] == "RegistryPush"
    assert "registry refused" in decision.status["error"]["log"]


@pytest.mark.parametrize(("attempts", "pause"), [(1, 5.0), (2, 10.0), (3, 20.0)])
def test_failed_pod_is_retried_after_a_pause_that_doubles(
    observe, steps, make, config, adopted, attempts, pause
):
    for _ in range(attempts):
        steps.assemble("Traceback\nKeyError: x", code=1, phase="Failed", ago=4)
    name = f"dep-a-a{attempts + 1}"
    seen = observe(steps.pods, recorded=f"dep-a-a{attempts}")
    assert decide(seen, make.now, config) == Decision(requeue_after=pause - 4)
    later = make.now + timedelta(seconds=pause - 4)
    retried = decide(seen, later, config)
    body = assemble(
        seen.deployment,
        seen.project,
        name,
        attempts + 1,
        config,
        later.timestamp(),
        None,
        seen.proven.as_request({}),
    )
    message = "assemble ended with exit code 1: KeyError: x; creating another pod"
    assert retried == Decision(
        create=(Create(kinds.POD, body, (ObjectEvent("BuildRetried", message, True),)),),
        status={
            **status.building(seen.deployment, name, *ASSEMBLING, later),
            "stages": [{"name": "queued", "seconds": 0.0}],
        },
        after=adopted(seen),
    )


def test_fourth_failed_pod_fails_the_build(observe, steps, make, config, failed):
    for _ in range(4):
        steps.assemble("Traceback\nKeyError: x", code=1, phase="Failed", ago=0)
    seen = observe(steps.pods, recorded="dep-a-a4")
    assert decide(seen, make.now, config) == failed(
        seen,
        "BuildFailed",
        "assemble ended with exit code 1: KeyError: x (after 4 attempts)",
        "The installation is likely at fault, not the crew; check the pods' Events.",
        "Traceback\nKeyError: x",
        stages=[{"name": "queued", "seconds": 0.0}],
    )


def test_deleted_pod_is_recreated_with_a_new_name(look, steps):
    assert created(look(recorded="dep-a-a1")) == ["dep-a-a2"]
    steps.assemble(NEEDS)
    assert created(look(steps.pods, recorded="dep-a-d1")) == ["dep-a-a2"]
    assert created(look([], recorded="dep-a-d1")) == ["dep-a-a1"]
    assert recorded_events(look(recorded="dep-a-a3")) == ["BuildRetried"]
    assert look([], recorded="dep-a-a4").status["error"]["message"] == (
        "the build pod was deleted before it ended (after 4 attempts)"
    )


def test_deleted_dependencies_pods_are_counted_and_keep_their_names(look, steps):
    for attempt in range(1, 5):
        lost = f"dep-a-d{attempt}"
        present = [pod for pod in steps.assemble(NEEDS).pods if pod.name.startswith("dep-a-a")]
        assert created(look(present, recorded=f"dep-a-a{attempt}")) == [lost]
        decision = look(present, recorded=lost)
        assert created(decision) == ([f"dep-a-a{attempt + 1}"] if attempt < 4 else [])
        steps.dependencies()
    assert decision.status["phase"] == "Failed"


def needs(key):
    return {
        **NEEDS,
        "dependencies_key": key,
        "dependencies_image": f"registry:5000/team/crews/demo:deps-{key}",
    }


def test_changed_dependencies_are_planned_again(look, steps):
    """The settings changed between the plan and the dependencies pod."""
    wrong = {"outcome": "trouble", "message": f"the source needs dependencies {OTHER_KEY}, not {KEY}"}
    steps.assemble(needs(KEY)).dependencies("source", 75, json.dumps(wrong), phase="Failed")
    again = look(steps.pods)
    assert (created(again), recorded_events(again)) == (["dep-a-a2"], ["BuildRetried"])
    decision = look(steps.assemble(needs(OTHER_KEY)).pods)
    assert created(decision) == ["dep-a-d2"]
    assert request_of(decision)["dependencies"] == {"key": OTHER_KEY}


def pushed(key):
    return json.dumps({"outcome": "pushed", "key": key, "digest": DIGEST})


def stages_in(decision):
    return {"stages": decision.status["stages"]}


@pytest.mark.parametrize("report", [pushed(OTHER_KEY), ""])
def test_dependency_image_is_built_twice_for_a_key(observe, look, steps, make, config, failed, report):
    """A pod of an earlier version reports no key."""
    for key in (KEY, OTHER_KEY, OTHER_KEY):
        assert created(look(steps.assemble(needs(key)).pods))
        steps.dependencies(message=pushed(KEY) if key == KEY else report)
    seen = observe(steps.assemble(needs(OTHER_KEY)).pods, recorded=steps.pods[-1].name)
    decision = decide(seen, make.now, config)
    assert decision == failed(
        seen,
        "RegistryPush",
        f"the dependency image registry:5000/team/crews/demo:deps-{OTHER_KEY} was pushed but is not in the "
        "registry",
        "Check the registry: it may be full, or delete pushed images.",
        **stages_in(decision),
    )


def test_dependency_builds_are_bounded(observe, look, steps, make, config, failed):
    for number in range(6):
        key = f"{number:064x}"
        assert created(look(steps.assemble(needs(key)).pods))
        steps.dependencies(message=pushed(key))
    seen = observe(steps.assemble(needs(KEY)).pods, recorded=steps.pods[-1].name)
    decision = decide(seen, make.now, config)
    assert decision == failed(
        seen,
        "BuildFailed",
        "the settings changed during the build: 6 dependency images were built for others",
        "Deploy again when the settings of the Project and of the installation stay the same.",
        **stages_in(decision),
    )


@pytest.mark.parametrize(
    "log",
    [
        "dial tcp: connection refused",
        "error pulling: Connection Refused",
        "read tcp 10.0.0.1:443: read: connection reset by peer",
        "error building image: GET https://hub/v2/x/manifests/1: TOOMANYREQUESTS: You have reached your",
        "error building image: GET https://hub/token: unexpected status code 429 Too Many Requests",
        "error building image: GET https://hub/v2/: unexpected status code 500 Internal Server Error",
        "WARNING: Retrying: NewConnectionError('Failed to establish a new connection: [Errno 111]')\n"
        "ERROR: No matching distribution found for langgraph",
    ],
)
def test_network_failure_retries_the_build(look, steps, log):
    steps.assemble(NEEDS).dependencies("kaniko", 1, log, phase="Failed")
    decision = look(steps.pods)
    assert (created(decision), recorded_events(decision)) == (["dep-a-a2"], ["BuildRetried"])


def test_deleted_pod_says_nothing_about_the_dependencies(look, steps, make):
    """Kaniko ends with 2 where a drained node stops it."""
    containers = [("source", {"exitCode": 0}), ("kaniko", {"exitCode": 2, "message": "Collecting langgraph"})]
    steps.assemble(NEEDS).pod("d", phase="Failed", containers=containers)
    assert look(steps.pods).status["phase"] == "Failed"
    steps.pods[-1].raw["metadata"]["deletionTimestamp"] = make.ago(1)
    assert created(look(steps.pods)) == ["dep-a-a2"]


def test_evicted_pod_of_a_full_node_is_retried(look, steps):
    message = "The node was low on resource: ephemeral-storage. Container kaniko was using 9Gi, request is 0."
    steps.assemble(NEEDS).pod("d", phase="Failed", reason="Evicted", message=message)
    assert created(look(steps.pods)) == ["dep-a-a2"]


@pytest.mark.parametrize(
    "ended",
    [
        {
            "exitCode": 137,
            "reason": "ContainerStatusUnknown",
            "message": "The container could not be located",
        },
        {"exitCode": 255, "reason": "Unknown", "message": "Collecting langgraph"},
    ],
)
def test_lost_kaniko_container_retries_the_build(look, steps, ended):
    """Its node restarted: Kaniko itself ends with 1."""
    containers = [("source", {"exitCode": 0}), ("kaniko", ended)]
    steps.assemble(NEEDS).pod("d", phase="Failed", containers=containers)
    assert created(look(steps.pods)) == ["dep-a-a2"]


@pytest.mark.parametrize(("ago", "failed"), [(10, False), (91, True)])
def test_image_pull_is_timed_from_the_end_of_the_last_container(look, steps, make, ago, failed):
    steps.assemble(NEEDS).pod("d", phase="Pending", conditions=make.scheduled(900))
    steps.pods[-1].status["containerStatuses"] = [
        {"name": "source", "state": {"terminated": {"exitCode": 0, "finishedAt": make.ago(ago)}}},
        {"name": "kaniko", "state": {"waiting": {"reason": "ErrImagePull"}}},
    ]
    assert (look(steps.pods).status["phase"] == "Failed") is failed


@pytest.mark.parametrize(
    ("conditions", "began", "deleted"),
    [
        ("scheduled-10", False, False),
        ("scheduled-299", False, False),
        ("scheduled-301", False, True),
        ("scheduled-301", True, False),
        ("scheduled-1861", True, True),
        ("unscheduled", False, False),
    ],
)
def test_stuck_pod_is_deleted(look, steps, make, conditions, began, deleted):
    _kind, _, seconds = conditions.partition("-")
    found = make.scheduled(float(seconds)) if seconds else [{"type": "PodScheduled", "status": "False"}]
    steps.pod("a", phase="Pending", conditions=found, spec={"activeDeadlineSeconds": 1800})
    state = {"running": {}} if began else {"waiting": {}}
    steps.pods[0].status["containerStatuses"] = [{"name": "assemble", "state": state}]
    decision = look(steps.pods)
    assert (bool(decision.delete), recorded_events(decision)) == (
        deleted,
        ["BuildPodStuck"] if deleted else [],
    )
    assert decision.requeue_after > 0
    assert decision.status["buildPod"] == "dep-a-a1"


@pytest.mark.parametrize("recorded", [None, "dep-a-a0"])
def test_decision_while_a_pod_runs(observe, steps, make, config, adopted, recorded):
    """Its name is recorded, also where the write that should have recorded it failed."""
    steps.pod("a", phase="Running", conditions=make.scheduled(10), spec={"activeDeadlineSeconds": 1800})
    steps.pods[0].status["containerStatuses"] = [{"name": "assemble", "state": {"running": {}}}]
    stages = {"stages": [{"name": "fetch", "startedAt": make.ago(60)}]}
    seen = observe(steps.pods, recorded=recorded)
    building = status.building(seen.deployment, "dep-a-a1", *ASSEMBLING, make.now)
    stages["stages"].insert(0, {"name": "queued", "seconds": 0.0})
    assert decide(seen, make.now, config) == Decision(
        status={**building, **stages}, after=adopted(seen), requeue_after=1850.0
    )
    seen = observe(steps.pods, recorded="dep-a-a1")
    building = status.building(seen.deployment, None, *ASSEMBLING, make.now)
    assert decide(seen, make.now, config).status == {**building, **stages}


def test_cause_that_delays_a_pod_is_in_the_conditions_until_it_is_gone(look, steps, make):
    def shown():
        found = look(steps.pods).status
        assert found["phase"] == "Building"
        return {(one["reason"], one["message"]) for one in found["conditions"]}

    waits = {"type": "PodScheduled", "status": "False", "message": "0/3 nodes"}
    steps.assemble(NEEDS).pod("d", phase="Pending", conditions=[waits])
    assert shown() == {("Unschedulable", "No node can schedule the pod: 0/3 nodes")}
    pulls = {"name": "source", "state": {"waiting": {"reason": "ErrImagePull", "message": "not found"}}}
    steps.pods[-1].status.update(conditions=make.scheduled(5), containerStatuses=[pulls])
    assert shown() == {("ImagePull", "the image of the build cannot be pulled: not found")}
    steps.pods[-1].status["containerStatuses"] = [{"name": "source", "state": {"running": {}}}]
    assert shown() == {INSTALLING}


def test_stuck_pod_is_deleted_with_an_event(observe, steps, make, config):
    steps.pod("a", phase="Pending", conditions=make.scheduled(301))
    seen = observe(steps.pods, recorded="dep-a-a1")
    decision = decide(seen, make.now, config)
    note = ObjectEvent("BuildPodStuck", "pod dep-a-a1 did not start or end in time; deleting it", True)
    assert decision == Decision(
        delete=(Delete(kinds.POD, "dep-a-a1", "uid-dep-a-a1", 0, (note,)),),
        status={**status.building(seen.deployment, None, *ASSEMBLING, make.now), **stages_in(decision)},
        requeue_after=5.0,
    )


@pytest.mark.parametrize(("ago", "forced"), [(-30, False), (30, False), (61, True)])
def test_unstoppable_build_pod_is_force_deleted(look, steps, make, ago, forced):
    deletion = {"deletionTimestamp": make.ago(ago), "ownerReferences": [{"uid": "uid-dep-a"}]}
    steps.pod("a", phase="Running", conditions=make.scheduled(4000), spec={"activeDeadlineSeconds": 1800})
    steps.pods[0].raw["metadata"].update(deletion)
    decision = look(steps.pods)
    assert [delete.grace_seconds for delete in decision.delete] == ([0] if forced else [])
    assert decision.requeue_after > 0


def test_build_pods_are_deleted_two_minutes_after_their_end(make, config, steps):
    steps.assemble(NEEDS, ago=130).assemble(BUILT, ago=100)
    decision = decide(ObservedDeployment(make.deployment(), make.project(), steps.pods), make.now, config)
    assert [deletion.name for deletion in decision.delete] == ["dep-a-a1"]
    assert decision.requeue_after == pytest.approx(21)
    assert decision.status is None


def test_lost_pod_counts_as_the_latest_step(steps):
    steps.assemble(NEEDS)
    found = build_steps(steps.pods, "dep-a-d1")
    assert (found.latest.kind, found.latest.pod, found.total) == ("d", None, 2)
    assert build_steps(steps.pods, "dep-a-a1").latest.pod is steps.pods[0]
    assert build_steps([], None).latest is None


@pytest.mark.parametrize("words", ["[" * 4096, '{"a":' * 800, "9" * 4096, "null"])
def test_any_termination_message_ends_the_build(look, steps, words):
    steps.assemble(NEEDS).dependencies("kaniko", 1, words, phase="Failed")
    assert look(steps.pods).status["phase"] == "Failed"


@pytest.mark.parametrize(
    "image",
    [
        "registry:5000/team/crews/other@sha256:" + "ab" * 32,
        "registry:5000/team/crews/demo/x@sha256:" + "ab" * 32,
        "registry:5000/team/other/demo@sha256:" + "ab" * 32,
        "evil:5000/team/crews/demo@sha256:" + "ab" * 32,
        "registry:5000/team/crews/demo@sha256:" + "ab" * 31,
        "registry:5000/team/crews/demo@sha256:" + "AB" * 32,
        "registry:5000/team/crews/demo@sha256:" + "ab" * 32 + "\n",
        "registry:5000/team/crews/demo:latest",
        "registry:5000/team/crews/demo",
        {"x": 1},
    ],
)
def test_image_of_another_repository_is_refused(look, steps, image):
    found = look(steps.assemble({**BUILT, "image": image}).pods, recorded="dep-a-a1")
    assert "image" not in (found.status or {})
    assert created(found) == ["dep-a-a2"] and recorded_events(found) == ["BuildRetried"]
    for _ in range(3):
        steps.assemble({**BUILT, "image": image})
    ended = look(steps.pods)
    assert ended.status["phase"] == "Failed" and "is not an image of" in ended.status["error"]["message"]


@pytest.mark.parametrize(
    "needs",
    [
        {"dependencies_image": f"registry:5000/team/crews/other:deps-{KEY}"},
        {"dependencies_image": f"registry:5000/team/crews/demo:{KEY}"},
        {"dependencies_image": "--dockerfile=/etc/passwd"},
        {"dependencies_key": "../x", "dependencies_image": "registry:5000/team/crews/demo:deps-../x"},
    ],
)
def test_dependency_image_of_another_repository_is_refused(look, steps, needs):
    found = look(steps.assemble({**NEEDS, **needs}).pods)
    assert created(found) == ["dep-a-a2"]


def test_image_under_deletion_is_rebuilt_after_its_deletion(observe, look, steps, make, config):
    going = {"deleted_images": frozenset({BUILT["image"]})}
    seen = observe(steps.assemble(BUILT).pods, recorded="dep-a-a1", before=going)
    message = "Waiting until old images are deleted from the registry; then the image is built again."
    waits = status.building(seen.deployment, None, "Assembling", message, make.now)
    assert decide(seen, make.now, config) == Decision(
        delete=(Delete(kinds.POD, "dep-a-a1", "uid-dep-a-a1", 0),),
        status={**waits, "stages": [{"name": "queued", "seconds": 0.0}]},
        requeue_after=1.0,
    )
    assert look([], recorded="dep-a-a1", before=going) == Decision(status=waits, requeue_after=1.0)
    assert created(look([], recorded="dep-a-a1")) == ["dep-a-a2"]
    other = {"deleted_images": frozenset({"registry:5000/team/crews/demo@sha256:" + "cd" * 32})}
    assert look(steps.pods, before=other).status["image"] == BUILT["image"]
