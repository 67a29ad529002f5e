"""Waits until the service runs as it was applied, or says at once why it will not.

Called by `dev.cluster.install`. Bounded; a container that keeps ending is not waited for.
"""

import time
from collections.abc import Iterable
from typing import Any

from dev.cluster.credentials import SYSTEM_NAMESPACE
from dev.cluster.kube_client import Calls, KubeError
from dev.errors import GroundError
from dev.progress import Progress

_SECONDS = 180
_RESTARTS_ACCEPTED = 2
_UNSEEN = "not seen yet"
DEPLOYMENTS = f"/apis/apps/v1/namespaces/{SYSTEM_NAMESPACE}/deployments"
_REPLICA_SETS = f"/apis/apps/v1/namespaces/{SYSTEM_NAMESPACE}/replicasets"
_REVISION = "deployment.kubernetes.io/revision"
_PODS = f"/api/v1/namespaces/{SYSTEM_NAMESPACE}/pods"
# What waiting does not cure: a person has to change something.
_HOPELESS = ("ImagePullBackOff", "ErrImagePull", "InvalidImageName", "CreateContainerConfigError")


def unfinished(deployment: dict[str, Any]) -> str | None:
    """None when the Deployment runs as it is specified, else how far it is."""
    wanted = deployment["spec"].get("replicas", 1)
    status = deployment.get("status", {})
    if status.get("observedGeneration", 0) < deployment["metadata"]["generation"]:
        return _UNSEEN
    updated, total = status.get("updatedReplicas", 0), status.get("replicas", 0)
    available = status.get("availableReplicas", 0)
    if updated == wanted and total == wanted and available == wanted:
        return None
    return f"{available} of {wanted} ready"


def _owners(item: dict[str, Any]) -> set[str]:
    return {owner["uid"] for owner in item["metadata"].get("ownerReferences", [])}


def current(
    deployments: Iterable[dict[str, Any]],
    replica_sets: Iterable[dict[str, Any]],
    pods: Iterable[dict[str, Any]],
) -> list[dict[str, Any]]:
    """The pods of the newest revisions; those of older ones are on their way out and prove nothing."""

    def revision(item: dict[str, Any]) -> str | None:
        found = item["metadata"].get("annotations", {}).get(_REVISION)
        return None if found is None else str(found)

    newest = {one["metadata"]["uid"]: revision(one) for one in deployments if unfinished(one) != _UNSEEN}
    live = {
        one["metadata"]["uid"]
        for one in replica_sets
        if any(owner in newest and newest[owner] == revision(one) for owner in _owners(one))
    }
    return [pod for pod in pods if _owners(pod) & live]


def failing(pods: Iterable[dict[str, Any]]) -> list[tuple[str, str]]:
    """The pods that will not get ready by waiting: (name, why). Pods that are being deleted do not count."""
    found = []
    for pod in pods:
        if pod["metadata"].get("deletionTimestamp"):
            continue
        for status in pod.get("status", {}).get("containerStatuses", []):
            waiting = status.get("state", {}).get("waiting") or {}
            reason = str(waiting.get("reason", ""))
            ended = status.get("lastState", {}).get("terminated") or {}
            if reason in _HOPELESS:
                found.append((pod["metadata"]["name"], f"{reason}: {waiting.get('message', '')}"))
            elif status.get("restartCount", 0) >= _RESTARTS_ACCEPTED and reason == "CrashLoopBackOff":
                why = f"{ended.get('reason', 'ended')}, exit code {ended.get('exitCode')}"
                found.append((pod["metadata"]["name"], f"keeps ending: {why}"))
    return found


def _last_lines(kube: Calls, pod: str) -> str:
    try:
        return kube.text(f"{_PODS}/{pod}/log?previous=true&tailLines=12").rstrip()
    except KubeError:
        return ""


def wait(kube: Calls, progress: Progress) -> None:
    """Returns when all Deployments of the service are ready. Raises GroundError with the pods' last lines."""
    deadline = time.monotonic() + _SECONDS
    with progress.step("rollout") as step:
        while True:
            deployments = kube.call("GET", DEPLOYMENTS)["items"]
            states = {one["metadata"]["name"]: unfinished(one) for one in deployments}
            waiting = {name: state for name, state in states.items() if state}
            if not waiting:
                step.detail = ", ".join(sorted(states))
                return
            step.detail = ", ".join(f"{name} {state}" for name, state in sorted(waiting.items()))
            replica_sets, pods = kube.call("GET", _REPLICA_SETS)["items"], kube.call("GET", _PODS)["items"]
            lost = failing(current(deployments, replica_sets, pods))
            if lost or time.monotonic() > deadline:
                lines = [f"{pod} {why}\n{_last_lines(kube, pod)}" for pod, why in lost]
                lines.append(
                    f"See: kubectl -n {SYSTEM_NAMESPACE} get pods; kubectl -n {SYSTEM_NAMESPACE} logs POD"
                )
                raise GroundError(f"The service does not start ({step.detail}).\n" + "\n".join(lines))
            time.sleep(0.25)
