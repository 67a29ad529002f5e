"""Deletion of the images of a deleted Project."""

import json
from dataclasses import replace
from datetime import timedelta

import pytest

from controller.images import deleted_project
from controller.images import pod as prune_pod
from controller.images.decide import MAX_PRUNE_PODS
from controller.pods.placement import NodePlacement, NodePlacements
from crds.objects import Pod
from crds.times import format_second

DIGEST = "registry:5000/team/crews/demo@sha256:"
KEY = "d" * 64
MAX_VARIABLE_BYTES = 131_072
"""Linux starts no program with a longer one."""


@pytest.fixture
def left(make, config):
    built = make.deployment("dep-a")
    built.raw["status"]["image"] = f"{DIGEST}aa"
    elsewhere = make.deployment("dep-b")
    elsewhere.raw["status"]["image"] = "registry:5000/team/crews/other@sha256:bb"
    project = make.project(status={"dependencies": [{"key": KEY, "usedAt": "2026-11-21T00:00:00Z"}]})
    return deleted_project.remaining_images(project, [built, elsewhere, built], config)


def pod(body, now, works=None, uid="uid-1"):
    status = {"phase": "Pending"}
    if works is not None:
        words = {"outcome": "pruned", "removed": 1} if works else {"outcome": "trouble"}
        ended = {"exitCode": 0 if works else 75, "message": json.dumps(words)}
        status = {
            "phase": "Succeeded" if works else "Failed",
            "containerStatuses": [{"name": "prune", "state": {"terminated": ended}}],
        }
    meta = {**body["metadata"], "uid": uid, "creationTimestamp": format_second(now)}
    return Pod({"metadata": meta, "spec": {**body["spec"], "nodeName": "one"}, "status": status})


def test_only_images_of_the_project_repository_are_listed(left):
    assert left.removal.images == (f"{DIGEST}aa",) and left.removal.dependencies == (KEY,)


def test_unowned_pod_removes_the_images_and_is_deleted(left, make, config):
    (child,) = deleted_project.decide(left, [], make.now, config).create
    assert child.body["metadata"]["ownerReferences"] == []
    assert prune_pod.images_of(pod(child.body, make.now)) == [f"{DIGEST}aa"]
    running = pod(child.body, make.now)
    waits = deleted_project.decide(left, [running], make.now, config)
    assert (waits.create, waits.delete) == ((), ()) and waits.requeue_after
    done = deleted_project.decide(None, [pod(child.body, make.now, works=True)], make.now, config)
    assert [deleted.name for deleted in done.delete] == [child.name] and not done.create


def test_unbuilt_project_needs_no_cleanup(make, config):
    nothing = deleted_project.remaining_images(
        make.project(), [make.deployment("dep-a", built=False)], config
    )
    assert deleted_project.decide(nothing, [], make.now, config) == deleted_project.Decision()
    assert deleted_project.decide(None, [], make.now, config) == deleted_project.Decision()


def test_failed_cleanup_is_tried_three_times_with_backoff(left, make, config):
    now, pods, pauses = make.now, [], []
    (child,) = deleted_project.decide(left, [], now, config).create
    for attempt in range(1, MAX_PRUNE_PODS + 1):
        pods.append(pod(child.body, now, works=False, uid=f"uid-{attempt}"))
        decision = deleted_project.decide(None, pods, now, config)
        if attempt == MAX_PRUNE_PODS:
            break
        pauses.append(decision.requeue_after)
        now += timedelta(seconds=decision.requeue_after)
        (child,) = deleted_project.decide(None, pods, now, config).create
        assert child.name not in {one.name for one in pods}
        assert "nodeName" not in child.body["spec"]
        assert prune_pod.images_of(pod(child.body, now)) == [f"{DIGEST}aa"]
    assert pauses == [60.0, 120.0]
    assert len(decision.delete) == MAX_PRUNE_PODS and not decision.create


def test_each_attempt_has_the_name_of_the_first_pod(left, make, config):
    (child,) = deleted_project.decide(left, [], make.now, config).create
    # A hash may begin with "a", as the suffix of a later attempt does.
    name = f"prune-a{child.name[7:]}"
    body = {**child.body, "metadata": {**child.body["metadata"], "name": name}}
    failed = pod(body, make.now, works=False)
    (second,) = deleted_project.decide(None, [failed], make.now + timedelta(seconds=60), config).create
    again, later = pod(second.body, make.now, works=False), make.now + timedelta(seconds=120)
    (third,) = deleted_project.decide(None, [failed, again], later, config).create
    assert (second.name, third.name) == (f"{name}-a2", f"{name}-a3")


def test_the_next_attempt_has_the_settings_of_the_first_pod(left, make, config):
    place = NodePlacement(
        {"pool": "builds"}, ({"key": "builds"},), ({"name": "pull"},), "gvisor", host_users=False
    )
    placed = replace(config, placements=NodePlacements(build=replace(place, priority_class="low")))
    (first,) = deleted_project.decide(left, [], make.now, placed).create
    failed, later = pod(first.body, make.now, works=False), make.now + timedelta(seconds=60)
    (second,) = deleted_project.decide(None, [failed], later, placed).create
    assert second.body["spec"] == first.body["spec"]


def test_pods_owned_by_the_project_are_ignored(left, make, config):
    body = prune_pod.build(left.project, left.removal, 1, config)
    (child,) = deleted_project.decide(left, [pod(body, make.now, works=False)], make.now, config).create
    assert child.body["metadata"]["ownerReferences"] == []


def test_unschedulable_cleanup_pod_is_deleted(left, make, config):
    (child,) = deleted_project.decide(left, [], make.now, config).create
    stuck = pod(child.body, make.now - timedelta(seconds=config.timing.unschedulable + 1))
    assert [deleted.name for deleted in deleted_project.decide(None, [stuck], make.now, config).delete] == [
        child.name
    ]


@pytest.fixture
def many(make, config):
    """Return the images of a Project with 1,000 Deployments and a repository of the longest name."""
    config = replace(config, registry=f"registry:5000/{'t' * 230}")
    prefix = f"{config.repository('demo')}@sha256:"
    built = [make.deployment(f"dep-{number}") for number in range(1000)]
    for number, deployment in enumerate(built):
        deployment.raw["status"]["image"] = f"{prefix}{number:064x}"
    keys = [{"key": f"{number:064x}", "usedAt": "2026-11-21T00:00:00Z"} for number in range(64)]
    project = make.project(status={"dependencies": keys})
    return deleted_project.remaining_images(project, built, config), config


def images_of(children, now):
    return [image for child in children for image in prune_pod.images_of(pod(child.body, now))]


def test_no_variable_is_longer_than_linux_allows(many, make):
    left, config = many
    children = deleted_project.decide(left, [], make.now, config).create
    containers = [child.body["spec"]["containers"][0] for child in children]
    values = [f"{one['name']}={one.get('value')}" for made in containers for one in made["env"]]
    assert max(map(len, values)) < MAX_VARIABLE_BYTES
    assert sorted(images_of(children, make.now)) == sorted(left.removal.images)
    asked = [prune_pod.removal_of(pod(child.body, make.now)).dependencies for child in children]
    assert [key for keys in asked for key in keys] == list(left.removal.dependencies)


def test_each_pod_of_many_images_has_attempts_of_its_own(many, make):
    left, config = many
    first, *rest = deleted_project.decide(left, [], make.now, config).create
    failed = pod(first.body, make.now, works=False)
    done = [pod(child.body, make.now, works=True, uid=child.name) for child in rest]
    # A pod that a quota has refused is created once there is room; no pod is created twice.
    missing = deleted_project.decide(left, [failed, *done[1:]], make.now, config)
    assert [child.name for child in missing.create] == [rest[0].name]
    waits = deleted_project.decide(None, [failed, *done], make.now, config)
    assert [deleted.name for deleted in waits.delete] == [child.name for child in rest]
    assert (waits.create, waits.requeue_after) == ((), 60.0)
    later = make.now + timedelta(seconds=60)
    again = deleted_project.decide(None, [failed], later, config).create
    assert [child.name for child in again] == [f"{first.name}-a2"]
    assert images_of(again, later) == images_of([first], later)
