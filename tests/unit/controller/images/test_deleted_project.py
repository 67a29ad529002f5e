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
