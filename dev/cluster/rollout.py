"""Wait for the rollout of the service; fail immediately if it cannot become ready.

Called by `dev.cluster.install`. Bounded; does not wait for a container in a crash loop.
"""

import time
from collections.abc import Iterable
from typing import Any

from dev.cluster.credentials import SYSTEM_NAMESPACE
from dev.cluster.kube_client import KubeApi, KubeApiError
from dev.errors import DevClusterError
from dev.process import probe
from dev.progress import StepProgress
from dev.settings import CREWYARD_URL

_ROLLOUT_TIMEOUT_SECONDS = 180
_NODE_PORT_TIMEOUT_SECONDS = 60
_RESTARTS_ACCEPTED = 2
_NOT_OBSERVED = "not observed yet"
DEPLOYMENTS = f"/apis/apps/v1/namespaces/{SYSTEM_NAMESPACE}/deployments"
_REPLICA_SETS = f"/apis/apps/v1/namespaces/{SYSTEM_NAMESPACE}/replicasets"
_REVISION = "deployment.kubernetes.io/revision"
_PODS = f"/api/v1/namespaces/{SYSTEM_NAMESPACE}/pods"
# Waiting does not help: a person has to change something.
_PERMANENT_REASONS = ("ImagePullBackOff", "ErrImagePull", "InvalidImageName", "CreateContainerConfigError")


def pending_state(deployment: dict[str, Any]) -> str | None:
    """Return None if the Deployment runs as specified, else its progress."""
    replicas = deployment["spec"].get("replicas", 1)
    status = deployment.get("status", {})
    if status.get("observedGeneration", 0) < deployment["metadata"]["generation"]:
        return _NOT_OBSERVED
    updated, total = status.get("updatedReplicas", 0), status.get("replicas", 0)
    available = status.get("availableReplicas", 0)
    if updated == replicas and total == replicas and available == replicas:
        return None
    return f"{available} of {replicas} ready"


def _owners(item: dict[str, Any]) -> set[str]:
    return {owner["uid"] for owner in item["metadata"].get("ownerReferences", [])}


def current_pods(
    deployments: Iterable[dict[str, Any]],
    replica_sets: Iterable[dict[str, Any]],
    pods: Iterable[dict[str, Any]],
) -> list[dict[str, Any]]:
    """Return the pods of the newest revisions; pods of older ones are being replaced."""

    def revision(item: dict[str, Any]) -> str | None:
        annotation = item["metadata"].get("annotations", {}).get(_REVISION)
        return None if annotation is None else str(annotation)

    newest_revisions = {
        owner_object["metadata"]["uid"]: revision(owner_object)
        for owner_object in deployments
        if pending_state(owner_object) != _NOT_OBSERVED
    }
    live_replica_sets = {
        owner_object["metadata"]["uid"]
        for owner_object in replica_sets
        if any(
            owner in newest_revisions and newest_revisions[owner] == revision(owner_object)
            for owner in _owners(owner_object)
        )
    }
    return [pod for pod in pods if _owners(pod) & live_replica_sets]


def failed_pods(pods: Iterable[dict[str, Any]]) -> list[tuple[str, str]]:
    """Return (name, reason) of the pods that will not become ready. Skips pods being deleted."""
    failures = []
    for pod in pods:
        if pod["metadata"].get("deletionTimestamp"):
            continue
        for status in pod.get("status", {}).get("containerStatuses", []):
            waiting = status.get("state", {}).get("waiting") or {}
            reason = str(waiting.get("reason", ""))
            ended = status.get("lastState", {}).get("terminated") or {}
            if reason in _PERMANENT_REASONS:
                failures.append((pod["metadata"]["name"], f"{reason}: {waiting.get('message', '')}"))
            elif status.get("restartCount", 0) >= _RESTARTS_ACCEPTED and reason == "CrashLoopBackOff":
                why = f"{ended.get('reason', 'ended')}, exit code {ended.get('exitCode')}"
                failures.append((pod["metadata"]["name"], f"keeps crashing: {why}"))
    return failures


def _last_lines(kube: KubeApi, pod: str) -> str:
    try:
        return kube.text(f"{_PODS}/{pod}/log?previous=true&tailLines=12").rstrip()
    except KubeApiError:
        return ""


def wait_ready(kube: KubeApi, progress: StepProgress) -> None:
    """Wait until the service's Deployments are ready. Raises DevClusterError with their pods' last logs."""
    deadline = time.monotonic() + _ROLLOUT_TIMEOUT_SECONDS
    with progress.step("rollout") as step:
        while True:
            deployments = kube.call("GET", DEPLOYMENTS)["items"]
            states = {deployment["metadata"]["name"]: pending_state(deployment) for deployment in deployments}
            waiting = {name: state for name, state in states.items() if state}
            if not waiting:
                step.detail = ", ".join(sorted(states))
                return
            step.detail = ", ".join(f"{name} {state}" for name, state in sorted(waiting.items()))
            replica_sets, pods = kube.call("GET", _REPLICA_SETS)["items"], kube.call("GET", _PODS)["items"]
            failures = failed_pods(current_pods(deployments, replica_sets, pods))
            if failures or time.monotonic() > deadline:
                lines = [f"{pod} {why}\n{_last_lines(kube, pod)}" for pod, why in failures]
                lines.append(
                    f"See: kubectl -n {SYSTEM_NAMESPACE} get pods; kubectl -n {SYSTEM_NAMESPACE} logs POD"
                )
                raise DevClusterError(
                    f"The service did not become ready ({step.detail}).\n" + "\n".join(lines)
                )
            time.sleep(0.25)


def wait_reachable(progress: StepProgress, url: str = CREWYARD_URL) -> None:
    """Wait until the API answers at its address: kube-proxy learns of ready pods later than their Deployment.

    Raises DevClusterError.
    """
    deadline = time.monotonic() + _NODE_PORT_TIMEOUT_SECONDS
    with progress.step(f"API at {url}") as step:
        while problem := probe.problem(probe.HttpProbe(f"{url}/readyz")):
            step.detail = problem
            if time.monotonic() > deadline:
                raise DevClusterError(
                    f"{url} does not answer, and its pods are ready: {problem}. See kube-proxy's log."
                )
            time.sleep(0.1)
        step.detail = "answers"
