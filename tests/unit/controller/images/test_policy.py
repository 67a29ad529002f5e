"""What is kept of Deployments and images, and in which order the rest goes."""

import json
from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from build.registry.prune_settings import read_prune_settings
from controller.images import decide, policy
from controller.images import pod as prune_pod
from controller.images.decide import ObservedImages
from controller.pods.placement import parse_placements
from crds.installation_limits import InstallationLimits
from crds.limits import PlanLimits, Plans
from crds.names import ANNOTATION_CLOSED, ANNOTATION_ERASED, LABEL_COMPONENT
from crds.objects import Pod
from crds.times import format_second

DAY = 24 * 3600
DIGEST = "registry:5000/team/crews/demo@sha256:"
KINDS = st.sampled_from(["active", "superseded", "failed", "building", "needed", "preview", "asked", "head"])


def one(make, name, kind, age, order=0):
    meta = {"creationTimestamp": make.ago(age)}
    status = {"image": f"{DIGEST}{name}"}
    more = {"preview": {}} if kind == "preview" else {}
    phase = {"active": "Active", "failed": "Failed", "building": "Building"}.get(kind, "Superseded")
    if kind == "asked":
        more["activation"] = 1
    if kind == "head":
        more["source"] = {"git": {"url": "u", "commit": "c" * 40}}
    made = make.deployment(
        name, built=kind not in ("failed", "building"), order=order, phase=phase, metadata=meta, **more
    )
    if made.built:
        made.raw["status"] |= status
    return made


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(kinds=st.lists(KINDS, max_size=14), asked=st.integers(1, 5), ceiling=st.integers(1, 5))
def test_only_old_ended_unused_deployments_are_deleted(make, kinds, asked, ceiling):
    kinds = [k if k != "active" or kinds.index(k) == i else "superseded" for i, k in enumerate(kinds)]
    all_of_them = [one(make, f"dep-{i}", kind, 1000 - i, i + 1) for i, kind in enumerate(kinds)]
    kind_of = {d.name: kind for d, kind in zip(all_of_them, kinds, strict=True)}
    active = next((d.name for d in all_of_them if kind_of[d.name] == "active"), None)
    needed = {name for name, kind in kind_of.items() if kind == "needed"}
    status = {"activeDeployment": active, "source": {"commit": "c" * 40}}
    project = make.project(retention={"deployments": asked}, status=status)
    limits, kept = InstallationLimits(retained_deployments=ceiling), min(asked, ceiling)
    deleted = policy.expired_deployments(project, all_of_them, needed, limits)
    assert {kind_of[d.name] for d in deleted} <= {"superseded", "failed", "preview"}
    for previews, most in ((False, kept), (True, 20)):
        group = [d for d in all_of_them if d.preview is previews]
        left = [d for d in group if d not in deleted]
        able = [d for d in left if kind_of[d.name] in ("superseded", "failed", "preview")]
        assert len(left) <= most or not able
        went = [d for d in deleted if d.preview is previews]
        assert len(group) - len(went) >= min(most, len(group))
        assert all(d.order < other.order for d in went for other in able)


def test_rollback_renews_the_age_of_its_target(make):
    old = one(make, "dep-0", "superseded", 900, order=9)
    others = [one(make, f"dep-{i}", "superseded", 800 - i, order=i) for i in (1, 2)]
    unordered = one(make, "dep-3", "failed", 850)
    project = make.project(retention={"deployments": 2})
    deleted = policy.expired_deployments(project, [old, *others, unordered], (), InstallationLimits())
    assert [d.name for d in deleted] == ["dep-1", "dep-2"] or [d.name for d in deleted] == ["dep-3", "dep-1"]
    assert old not in deleted


class RetentionWorld:
    """A project with 3 kept, 6 built; what the Decisions say is done."""

    def __init__(self, make, config):
        self.make, self.config, self.now = make, config, make.now
        self.deployments = {
            f"dep-{i}": one(make, f"dep-{i}", "active" if i == 5 else "superseded", 1000 - i, i + 1)
            for i in range(6)
        }
        self.pods, self.needed, self.dependencies = {}, set(), []
        self.events = []

    @property
    def kept(self):
        status = {"activeDeployment": "dep-5", "dependencies": self.dependencies}
        project = self.make.project(retention={"deployments": 3}, status=status)
        return ObservedImages(project, list(self.deployments.values()), self.needed, list(self.pods.values()))

    def step(self):
        """One Decision; after an announcement the one that follows it too."""
        decision = self.decided()
        if any(child.body["spec"].get("schedulingGates") for child in decision.create):
            self.now += timedelta(seconds=31)
            return self.decided()
        return decision

    def decided(self):
        decision = decide.decide(self.kept, self.now, self.config)
        for child in decision.create:
            meta = {
                **child.body["metadata"],
                "uid": f"uid-{child.name}",
                "creationTimestamp": format_second(self.now),
            }
            self.pods[child.name] = Pod(
                {"metadata": meta, "spec": child.body["spec"], "status": {"phase": "Pending"}}
            )
        for deleted in decision.delete:
            (self.pods if deleted.kind.name == "Pod" else self.deployments).pop(deleted.name)
        self.dependencies = (decision.status or {}).get("dependencies", self.dependencies)
        notes = (*decision.events, *(note for deleted in decision.delete for note in deleted.events))
        self.events += [note.reason for note in notes]
        return decision

    def end(self, works=True):
        for name, pod in list(self.pods.items()):
            if not pod.finished and not prune_pod.is_announcement(pod):
                words = {"outcome": "pruned", "removed": 1} if works else {"outcome": "trouble"}
                ended = {"exitCode": 0 if works else 75, "message": json.dumps(words)}
                status = {
                    "phase": "Succeeded" if works else "Failed",
                    "containerStatuses": [{"name": "prune", "state": {"terminated": ended}}],
                }
                self.pods[name] = Pod({**pod.raw, "status": status})

    @property
    def at_work(self):
        return [pod for pod in self.pods.values() if not pod.finished and not prune_pod.is_announcement(pod)]

    @property
    def asked(self):
        (pod,) = self.at_work
        env = {e["name"]: e.get("value") for e in pod.spec["containers"][0]["env"]}
        return json.loads(env["CREWYARD_PRUNE"])


@pytest.fixture
def world(make, config):
    return RetentionWorld(make, config)


def test_images_are_deleted_before_the_objects(world):
    world.step()
    assert len(world.deployments) == 6
    assert world.asked["images"] == [f"{DIGEST}dep-{i}" for i in range(3)]
    assert world.asked["registry"] == {"prefix": "registry:5000/team", "insecure": True}
    assert prune_pod.image_deletions(world.pods.values()).deployments == {"dep-0", "dep-1", "dep-2"}
    assert prune_pod.image_deletions(world.pods.values()).images == set(world.asked["images"])
    assert not world.step().create and len(world.deployments) == 6
    world.end()
    world.step()
    assert set(world.deployments) == {"dep-3", "dep-4", "dep-5"}
    world.step()
    assert not world.pods and not world.step().create


def test_images_beyond_the_limit_of_the_installation_are_deleted(world):
    world.config = replace(world.config, limits=InstallationLimits(retained_deployments=2))
    world.step()
    assert world.asked["images"] == [f"{DIGEST}dep-{i}" for i in range(4)]


def test_images_beyond_the_limit_of_the_plan_are_deleted(world):
    world.config = replace(
        world.config, plans=Plans({"free": PlanLimits(60, 2, limits={"retained_deployments": 2})})
    )
    world.step()
    assert world.asked["images"] == [f"{DIGEST}dep-{i}" for i in range(4)]


def test_erased_deployment_goes_after_its_image_unless_it_is_active(world):
    world.deployments = {name: world.deployments[name] for name in ("dep-4", "dep-5")}
    for deployment in world.deployments.values():
        deployment.raw["metadata"]["annotations"] = {ANNOTATION_ERASED: "2026-11-21T10:00:00Z"}
    world.step()
    assert world.asked["images"] == [f"{DIGEST}dep-4"] and len(world.deployments) == 2
    world.end()
    world.step()
    assert set(world.deployments) == {"dep-5"}


def test_erased_deployment_stays_while_a_rollback_to_it_is_pending(make):
    erased = one(make, "dep-0", "asked", 900)
    erased.raw["metadata"]["annotations"] = {ANNOTATION_ERASED: "2026-11-21T10:00:00Z"}
    assert policy.expired_deployments(make.project(), [erased], (), InstallationLimits()) == []
    erased.raw["status"]["activationSeen"] = 1
    assert policy.expired_deployments(make.project(), [erased], (), InstallationLimits()) == [erased]


def test_deletion_is_announced_and_checked_again(world):
    world.decided()
    assert not world.at_work
    # Who knows of the announcement takes none of these over.
    assert prune_pod.image_deletions(world.pods.values()).deployments == {"dep-0", "dep-1", "dep-2"}
    world.now += timedelta(seconds=20)
    assert world.decided().requeue_after > 5 and not world.at_work
    # Another controller, which did not know yet, has given the image of dep-0 to a newer one meanwhile.
    slots = world.deployments["dep-0"].image
    world.deployments["dep-4"].raw["status"]["image"] = slots
    world.now += timedelta(seconds=15)
    world.decided()
    assert world.asked["images"] == [f"{DIGEST}dep-{i}" for i in (1, 2)]
    world.end()
    for _ in range(3):
        world.step()
    assert not world.pods and "dep-4" in world.deployments


def test_prune_pod_that_waits_for_its_queue_is_no_announcement(world):
    world.step()
    (pod,) = world.at_work
    pod.spec["schedulingGates"] = [{"name": "kueue.x-k8s.io/admission"}]
    assert not world.step().create and world.at_work == [pod]
    world.now += timedelta(seconds=world.config.timing.unschedulable)
    world.step()
    assert world.events == ["PrunePodStuck"] and not world.at_work


def test_obsolete_deletion_mark_is_removed(world):
    world.decided()
    world.needed = {"dep-0", "dep-1", "dep-2"}
    world.now += timedelta(seconds=31)
    world.decided()
    assert not world.pods


def test_image_of_another_deployment_is_kept(world):
    world.deployments["dep-0"].raw["status"]["image"] = world.deployments["dep-5"].image
    world.step()
    assert "dep-0" not in world.deployments
    assert world.deployments["dep-5"].image not in world.asked["images"]


def test_image_in_an_earlier_registry_does_not_keep_the_others(world):
    world.deployments["dep-1"].raw["status"]["image"] = "earlier:5000/crews/demo@sha256:dep-1"
    world.step()
    assert "dep-1" not in world.deployments and world.events == ["PruneGivenUp"]
    assert world.asked["images"] == [f"{DIGEST}dep-{i}" for i in (0, 2)]


def test_failed_deletion_is_tried_three_times_with_backoff(world):
    for attempt in range(1, 4):
        world.step()
        assert len(world.at_work) == 1
        world.end(works=False)
        if attempt < 3:
            assert world.step().requeue_after > 0 and len(world.deployments) == 6
            world.now += timedelta(seconds=300)
    world.step()
    assert len(world.deployments) == 3 and world.events[-1] == "PruneGivenUp"
    assert world.events.count("PruneRetried") == 2
    world.step()
    assert not world.pods
    assert not world.step().create


def test_failed_deletion_goes_on_without_its_announcement(world):
    world.step()
    world.end(works=False)
    world.pods = {name: pod for name, pod in world.pods.items() if pod.finished}
    assert world.step().requeue_after > 0
    world.now += timedelta(seconds=300)
    world.step()
    assert len(world.at_work) == 1


def test_a_refused_pod_is_tried_again_after_a_growing_pause(make):
    refused, pauses = None, []
    for _ in range(9):
        refused = decide.next_refusal(refused, make.now)
        pauses.append((refused.retry_at - make.now).total_seconds())
    assert pauses == [60, 120, 240, 480, 960, 1920, 3600, 3600, 3600]


def test_prune_pods_carry_the_labels_of_their_queue(make, config):
    labels = {"kueue.x-k8s.io/queue-name": "builds", "team": "a"}
    text = json.dumps({"build": {"labels": labels, "annotations": {"note": "n"}}})
    config = replace(config, placements=parse_placements(text))
    removal = prune_pod.ImageRemoval({"dep-0": "uid-dep-0"}, (f"{DIGEST}dep-0",), ())
    body = prune_pod.build(make.project(), removal, 1, config)
    found = body["metadata"]
    assert labels.items() <= found["labels"].items() and found["labels"][LABEL_COMPONENT] == "prune"
    assert found["annotations"]["note"] == "n"
    assert prune_pod.removal_of(Pod(body)).deployments == {"dep-0": "uid-dep-0"}
    # An announcement never runs: the queue keeps no room for it.
    announced = prune_pod.announcement(make.project(), removal, config)["metadata"]["labels"]
    assert (announced["team"], announced[LABEL_COMPONENT]) == ("a", "prune")
    assert "kueue.x-k8s.io/queue-name" not in announced


def test_partly_deleted_image_cannot_be_rolled_back_to(world):
    world.step()
    world.end(works=False)
    world.step()
    world.deployments["dep-1"].raw["spec"]["activation"] = 1
    world.needed = {"dep-2"}
    world.now += timedelta(seconds=300)
    world.step()
    assert world.asked["images"] == [f"{DIGEST}dep-{i}" for i in range(3)]
    assert prune_pod.image_deletions(world.pods.values()).deployments == {"dep-0", "dep-1", "dep-2"}


def test_unused_dependency_images_are_deleted_after_14_days(world, make):
    for name in ("dep-0", "dep-1", "dep-2", "dep-3"):
        del world.deployments[name]
    old, new = make.ago(15 * DAY), make.ago(13 * DAY)
    world.dependencies = [{"key": "new", "usedAt": new}, {"key": "old", "usedAt": old}]
    building = make.deployment("dep-9", built=False)
    world.deployments["dep-9"] = building
    assert not world.step().create
    del world.deployments["dep-9"]
    world.step()
    assert (world.asked["dependencies"], world.asked["images"]) == (["old"], [])
    world.end()
    world.step()
    assert world.dependencies == [{"key": "new", "usedAt": new}]
    world.step()
    assert not world.pods


def test_dependency_image_use_is_written_once_a_day(make):
    def built(name, key, ago):
        when = {"type": "Built", "status": "True", "lastTransitionTime": make.ago(ago)}
        return make.deployment(name, status={"dependenciesKey": key}, metadata={}), when

    found = []
    for name, key, ago in (("dep-a", "one", 60), ("dep-b", "two", 3 * DAY), ("dep-c", "old", 20 * DAY)):
        deployment, when = built(name, key, ago)
        deployment.raw["status"]["conditions"] = [when]
        found.append(deployment)
    listed = policy.updated_dependencies(make.project(), found, make.now)
    assert [entry["key"] for entry in listed] == ["one", "two"]
    assert listed[0]["usedAt"] == "2026-11-21T00:00:00Z"
    again = make.project(status={"dependencies": listed})
    assert policy.updated_dependencies(again, found, make.now) is None
    assert policy.updated_dependencies(again, [], make.now) is None


def test_base_image_of_an_installation_is_used_with_it(make):
    found = _with_key(make, 1, 60)
    found.raw["status"]["baseKey"] = "base"
    listed = policy.updated_dependencies(make.project(), [found], make.now)
    assert {entry["key"] for entry in listed} == {"001", "base"}
    full = [{"key": f"{i:03d}", "usedAt": make.ago(i * 60)} for i in range(64)]
    full[63]["key"] = "base"
    project = make.project(status={"dependencies": full})
    assert "base" in policy.unused_dependencies(project, [], make.now)
    assert "base" not in policy.unused_dependencies(project, [found], make.now)


def _with_key(make, number, ago):
    when = {"type": "Built", "status": "True", "lastTransitionTime": make.ago(ago)}
    made = make.deployment(f"dep-{number}", status={"dependenciesKey": f"{number:03d}"})
    made.raw["status"]["conditions"] = [when]
    return made


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(ages=st.lists(st.integers(0, 20 * DAY), max_size=80))
def test_deleted_dependency_is_not_recorded_again(make, ages):
    deployments = [_with_key(make, number, ago) for number, ago in enumerate(ages)]
    project = make.project(
        status={"dependencies": policy.updated_dependencies(make.project(), deployments, make.now) or []}
    )
    deleted = policy.unused_dependencies(project, deployments, make.now)
    left = policy.remaining_dependencies(project, deleted)
    after = make.project(status={"dependencies": left})
    noted = policy.updated_dependencies(after, deployments, make.now) or left
    assert not {entry["key"] for entry in noted} & set(deleted)
    assert (
        policy.unused_dependencies(make.project(status={"dependencies": noted}), deployments, make.now) == []
    )


def test_recorded_dependency_images_are_limited(make):
    full = [{"key": f"{i:03d}", "usedAt": make.ago(i * 60)} for i in range(64)]
    project = make.project(status={"dependencies": full})
    assert len(policy.unused_dependencies(project, [], make.now)) == 4
    assert len(policy.remaining_dependencies(project, {"000"})) == 63


def test_prune_pod_is_restricted_with_minimal_settings(make, secured):
    removal = prune_pod.ImageRemoval({"dep-a": "uid"}, ("image",), ("key",))
    body = prune_pod.build(make.project(), removal, 1, secured)
    (container,) = body["spec"]["containers"]
    names = {entry["name"] for entry in container["env"]}
    assert "REGISTRY_AUTH" in names and "CREWYARD_TOKEN" not in names and "CREWYARD_DEPLOYMENT" not in names
    assert container["command"] == ["python3", "-m", "build", "prune"]
    assert body["spec"]["automountServiceAccountToken"] is False and "volumes" not in body["spec"]
    assert container["securityContext"]["runAsNonRoot"] is True
    assert (
        body["metadata"]["name"] == prune_pod.build(make.project(), removal, 1, secured)["metadata"]["name"]
    )
    assert prune_pod.removal_of(Pod(body)).deployments == {"dep-a": "uid"}
    assert prune_pod.removal_of(make.pod()).deployments == {}


def test_prune_pod_gets_the_settings_of_its_program(make, secured):
    removal = prune_pod.ImageRemoval({"dep-a": "uid"}, (f"r/crews/demo@sha256:{'0' * 64}",), ("ab" * 32,))
    (container,) = prune_pod.build(make.project(), removal, 1, secured)["spec"]["containers"]
    settings_read = read_prune_settings({e["name"]: e["value"] for e in container["env"] if "value" in e})
    assert settings_read.repository == "registry:5000/team/crews/demo"
    assert (settings_read.images, settings_read.dependencies) == (removal.images, removal.dependencies)


def test_closed_previews_are_deleted_in_any_number(make):
    previews = [one(make, f"dep-{i}", "preview", 100 - i, i + 1) for i in range(3)]
    previews[2].raw["metadata"]["annotations"] = {ANNOTATION_CLOSED: "pull request 7"}
    deleted = policy.expired_deployments(make.project(), previews, set(), InstallationLimits())
    assert [d.name for d in deleted] == ["dep-2"]
    assert policy.expired_deployments(make.project(), previews, {"dep-2"}, InstallationLimits()) == []


def test_closed_mark_on_other_deployments_is_ignored(make):
    plain = one(make, "dep-0", "superseded", 100, 1)
    plain.raw["metadata"]["annotations"] = {ANNOTATION_CLOSED: "pull request 7"}
    assert policy.expired_deployments(make.project(), [plain], set(), InstallationLimits()) == []
