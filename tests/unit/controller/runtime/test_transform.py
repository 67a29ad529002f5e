"""What is kept of objects, and how little room thousands of them take."""

import json
import sys

import pytest

from controller.runtime.transform import transform
from crds.kinds import DEPLOYMENT, POD, RUN

RUN_BYTES = 8 * 1024
"""For a live Run with its pod."""


def metadata(kind, number, **more):
    return {
        "name": f"run-{number:026}", "namespace": "crews", "uid": f"{kind}-0000-0000-{number:020}",
        "resourceVersion": str(1000 + number), "generation": 1, "creationTimestamp": "2026-11-22T04:52:31Z",
        "labels": {
            "app.kubernetes.io/managed-by": "crewyard", "crewyard.dev/deployment": "dep-1",
            "crewyard.dev/project": "tides", "crewyard.dev/run": f"run-{number:026}",
        },
        "ownerReferences": [{
            "apiVersion": "crewyard.dev/v1alpha1", "kind": "Project", "name": "tides", "controller": True,
            "uid": "299e076d-8361-47b3-8351-49944aba2745", "blockOwnerDeletion": False,
        }],
        "managedFields": [{"manager": "kubectl", "fieldsV1": {f"f:{n}": {} for n in range(40)}}], **more,
    }  # fmt: skip


def condition(name, **more):
    return {
        "type": name, "status": "True", "reason": "AsItIs", "message": f"It is {name}.",
        "lastProbeTime": None,
        "lastTransitionTime": "2026-11-22T04:52:42Z", "observedGeneration": 1, **more,
    }  # fmt: skip


def run(number, phase="Running"):
    claim = {"podUid": f"pod-0000-0000-{number:020}", "time": "2026-11-22T04:52:33.558149Z"}
    status = {
        "phase": phase, "project": "tides", "deployment": "dep-1",
        "image": "registry/tides@sha256:" + 64 * "a",
        "plan": {"framework": "python", "entrypoint": "main:kickoff"}, "claim": {**claim, "nonce": 32 * "b"},
        "pod": {"name": f"run-{number:026}", "uid": claim["podUid"]}, "startTime": claim["time"],
        "conditions": [condition("Ready"), condition("Admitted"), condition("Succeeded", status="Unknown")],
        "result": {"outcome": "succeeded", "output": {"text": 5000 * "c"}},
    }  # fmt: skip
    spec = {"project": "tides", "deployment": "dep-1", "input": {"text": 5000 * "d"}, "timeout": "5m"}
    return {"metadata": metadata("run", number), "spec": spec, "status": status}


def pod(number):
    ended = {
        "exitCode": 0, "reason": "Completed", "message": '{"outcome": "succeeded"}',
        "finishedAt": "2026-11-22T04:52:42Z", "containerID": "containerd://" + 64 * "e",
    }  # fmt: skip
    container = {
        "name": "crew", "state": {"terminated": ended}, "lastState": {}, "ready": False, "started": False,
        "restartCount": 0, "image": "sha256:" + 64 * "f", "imageID": "registry/tides@sha256:" + 64 * "a",
        "containerID": "containerd://" + 64 * "e", "resources": {"limits": {"cpu": "1", "memory": "512Mi"}},
        "allocatedResources": {"cpu": "50m", "memory": "512Mi"},
    }  # fmt: skip
    status = {
        "phase": "Running", "reason": "None", "message": "no more", "startTime": "2026-11-22T04:52:31Z",
        "conditions": [
            condition(name)
            for name in (
                "PodScheduled", "Initialized", "Ready", "ContainersReady", "DisruptionTarget",
                "TerminationTarget",
            )
        ],
        "containerStatuses": [container], "hostIP": "10.0.0.1", "hostIPs": [{"ip": "10.0.0.1"}],
        "podIP": "10.1.0.1", "podIPs": [{"ip": "10.1.0.1"}], "qosClass": "Burstable",
    }  # fmt: skip
    spec = {
        "activeDeadlineSeconds": 3960,
        "nodeName": "node-1",
        "containers": [{"name": "crew", "env": [{"name": "A"}] * 20}],
    }
    return {"metadata": metadata("pod", number), "spec": spec, "status": status}


def decoded(obj):
    """As it comes from the apiserver: nothing shared with another object."""
    return json.loads(json.dumps(obj))


def size(value, seen):
    if id(value) in seen:
        return 0
    seen.add(id(value))
    held = [*value.keys(), *value.values()] if isinstance(value, dict) else value
    parts = held if isinstance(value, dict | list) else ()
    return sys.getsizeof(value) + sum(size(part, seen) for part in parts)


def test_live_runs_take_little_memory():
    count, seen = 500, set()
    kept = [(transform(RUN, decoded(run(at))), transform(POD, decoded(pod(at)))) for at in range(count)]
    assert sum(size(part, seen) for pair in kept for part in pair) / count < RUN_BYTES


def test_transform_keeps_the_state_of_a_pod():
    kept = transform(POD, pod(1))
    assert kept["spec"] == {"activeDeadlineSeconds": 3960, "nodeName": "node-1"}
    assert {key: kept["status"][key] for key in ("phase", "reason", "message")} == {
        "phase": "Running",
        "reason": "None",
        "message": "no more",
    }
    condition_types = [condition["type"] for condition in kept["status"]["conditions"]]
    assert condition_types == ["PodScheduled", "Ready", "DisruptionTarget", "TerminationTarget"]
    assert kept["status"]["conditions"][0] == {
        "type": "PodScheduled", "status": "True", "reason": "AsItIs", "message": "It is PodScheduled.",
        "lastTransitionTime": "2026-11-22T04:52:42Z",
    }  # fmt: skip
    (container,) = kept["status"]["containerStatuses"]
    assert container["name"] == "crew"
    assert container["state"]["terminated"] == {
        "exitCode": 0, "reason": "Completed", "message": '{"outcome": "succeeded"}',
        "finishedAt": "2026-11-22T04:52:42Z",
    }  # fmt: skip


def test_transform_drops_inputs_and_outputs():
    kept = transform(RUN, run(1))
    assert "input" not in kept["spec"] and kept["spec"]["timeout"] == "5m"
    assert kept["status"]["result"] == {"outcome": "succeeded"}
    assert kept["status"]["claim"]["nonce"] == 32 * "b"


def test_transform_drops_most_of_an_ended_run():
    kept = transform(RUN, run(1, "Succeeded"))
    assert set(kept["status"]) == {"phase", "project", "deployment", "pod", "claim", "result"}


@pytest.mark.parametrize("kind", [RUN, POD, DEPLOYMENT])
def test_transform_drops_last_applied_configuration(kind):
    applied = {"kubectl.kubernetes.io/last-applied-configuration": "{}", "crewyard.dev/requested-at": "now"}
    found = {"metadata": metadata("x", 1, annotations=applied), "status": {}}
    kept = transform(kind, found)
    assert kept["metadata"]["annotations"] == {"crewyard.dev/requested-at": "now"}
    assert "managedFields" not in kept["metadata"]
    assert len(found["metadata"]["annotations"]) == 2


def test_transform_drops_foreign_annotations():
    found = {"metadata": metadata("x", 1, annotations={"kubectl.kubernetes.io/default-container": "crew"})}
    assert "annotations" not in transform(POD, found)["metadata"]
