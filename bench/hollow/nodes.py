"""Hollow nodes, and kwok's behaviour for their pods. Pure; called by `bench.hollow.control_plane`.

A pod is Running as soon as it is bound. Pods of Jobs and bare pods, labelled `SELF_ENDING_LABELS`, end after
`WORK_SECONDS`; those of Runs when `bench.hollow.runner` reports so, after the same time. Deleted pods
disappear immediately.
"""

import json
from typing import Any

KWOK_NODE_KEY = "kwok.x-k8s.io/node"
NODE_COUNT = 4
WORK_SECONDS = 1.0
CAPACITY = {"cpu": "4k", "memory": "16Ti", "ephemeral-storage": "64Ti", "pods": "10k"}
TOLERATION = {"key": KWOK_NODE_KEY, "operator": "Exists", "effect": "NoSchedule"}
"""For the pods of measurements; no other pod may run on these nodes."""
SELF_ENDING_LABELS = {"hollow": "ends"}
"""Labels of pods that end without a runner."""
_NOW = "{{ Now | Quote }}"
_READY = ("Initialized", "Ready", "ContainersReady")
_CONTAINER = """
- name: {{ .name | Quote }}
  image: {{ .image | Quote }}
  restartCount: 0
"""


def node(number: int) -> dict[str, Any]:
    """Return one node, which kwok makes ready."""
    name = f"hollow-{number}"
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "annotations": {KWOK_NODE_KEY: "fake"},
            "labels": {KWOK_NODE_KEY: "fake", "kubernetes.io/hostname": name, "kubernetes.io/os": "linux"},
        },
        "spec": {"taints": [{"key": KWOK_NODE_KEY, "value": "fake", "effect": "NoSchedule"}]},
        "status": {"capacity": CAPACITY, "allocatable": CAPACITY},
    }


def configuration() -> str:
    """Return kwok's configuration: JSON documents, which are also YAML."""
    options = {
        "apiVersion": "config.kwok.x-k8s.io/v1alpha1",
        "kind": "KwokConfiguration",
        "metadata": {"name": "kwok"},
        "options": {
            "manageNodesWithAnnotationSelector": f"{KWOK_NODE_KEY}=fake",
            "nodeLeaseDurationSeconds": 40,
            "nodeLeaseParallelism": 4,
            "nodePlayStageParallelism": 4,
            "podPlayStageParallelism": 16,
            "podsOnNodeSyncParallelism": 1,
            "enablePodsOnNodeSyncListPager": True,
            "enablePodsOnNodeSyncStreamWatch": False,
            "cidr": "10.0.0.0/16",
        },
    }
    documents = [options, _node_ready(), _pod_running(), _pod_done(), _pod_deleted()]
    return "\n---\n".join(json.dumps(document, indent=1) for document in documents) + "\n"


def _stage(name: str, kind: str, conditions: list[Any], **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "kwok.x-k8s.io/v1alpha1",
        "kind": "Stage",
        "metadata": {"name": name},
        "spec": {
            "resourceRef": {"apiGroup": "v1", "kind": kind},
            "selector": {"matchExpressions": conditions},
            **spec,
        },
    }


def _exists(path: str, exists: bool) -> dict[str, str]:
    return {"key": path, "operator": "Exists" if exists else "DoesNotExist"}


def _in(path: str, *values: str) -> dict[str, Any]:
    return {"key": path, "operator": "In", "values": list(values)}


def _node_ready() -> dict[str, Any]:
    ready = '.status.conditions.[] | select( .type == "Ready" ) | .status'
    template = (
        "conditions:\n"
        f"- {{type: Ready, status: 'True', reason: Hollow, lastHeartbeatTime: {_NOW}, "
        f"lastTransitionTime: {_NOW}}}\n"
        f"allocatable: {json.dumps(CAPACITY)}\ncapacity: {json.dumps(CAPACITY)}\nphase: Running\n"
    )
    condition = {"key": ready, "operator": "NotIn", "values": ["True"]}
    return _stage("node-ready", "Node", [condition], next={"statusTemplate": template})


def _pod_running() -> dict[str, Any]:
    conditions = "".join(
        f"- {{type: {kind}, status: 'True', lastTransitionTime: {_NOW}}}\n" for kind in _READY
    )
    state = f"  ready: true\n  started: true\n  state: {{running: {{startedAt: {_NOW}}}}}\n"
    template = (
        f"conditions:\n{conditions}"
        f"containerStatuses:{{{{ range .spec.containers }}}}{_CONTAINER}{state}{{{{ end }}}}\n"
        f"phase: Running\nstartTime: {_NOW}\n"
    )
    selector = [_exists(".metadata.deletionTimestamp", False), _in(".status.phase", "Pending")]
    return _stage("pod-running", "Pod", selector, next={"statusTemplate": template})


def _pod_done() -> dict[str, Any]:
    state = (
        "  ready: false\n  started: false\n"
        f"  state: {{terminated: {{exitCode: 0, reason: Completed, startedAt: {_NOW}, "
        f"finishedAt: {_NOW}}}}}\n"
    )
    container_statuses = f"{{{{ range .spec.containers }}}}{_CONTAINER}{state}{{{{ end }}}}"
    template = f"containerStatuses:{container_statuses}\nphase: Succeeded\n"
    selector = [
        _exists(".metadata.deletionTimestamp", False),
        _in(".status.phase", "Running"),
    ]
    delay = {"durationMilliseconds": int(WORK_SECONDS * 1000)}
    stage = _stage("pod-done", "Pod", selector, delay=delay, next={"statusTemplate": template})
    stage["spec"]["selector"]["matchLabels"] = SELF_ENDING_LABELS
    return stage


def _pod_deleted() -> dict[str, Any]:
    return _stage("pod-gone", "Pod", [_exists(".metadata.deletionTimestamp", True)], next={"delete": True})
