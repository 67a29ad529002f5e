"""Build of an image on the cluster with Kaniko, from a directory of this host.

Called by `dev.images.service_image`. The pod mounts the staged directory, so nothing is uploaded, and writes
the digest to its termination message. The build is trusted code, so it may read the credential for the push.
"""

import time
import uuid
from pathlib import Path
from typing import Any

from dev.cluster.kube_client import HttpKubeApi, KubeApiError
from dev.errors import DevClusterError
from dev.progress import Step
from dev.settings import REGISTRY

NAMESPACE = "crewyard-dev"
_BUILD_TIMEOUT_SECONDS = 900
_NAMESPACE_OBJECT = {
    "apiVersion": "v1",
    "kind": "Namespace",
    # Only this namespace may mount a host directory.
    "metadata": {"name": NAMESPACE, "labels": {"pod-security.kubernetes.io/enforce": "privileged"}},
}


def pod(name: str, context: Path, credential: Path, repository: str, base: str, image: str) -> dict[str, Any]:
    """Return the build pod. `base` and `image` (the executor) are references by digest.

    `credential` is a directory with the `config.json` for `repository`.
    """
    arguments = [
        "--context=dir:///workspace",
        "--dockerfile=/workspace/Dockerfile",
        f"--build-arg=BASE_IMAGE={base}",
        f"--destination={REGISTRY}/{repository}:latest",
        "--cache=true",
        f"--cache-repo={REGISTRY}/{repository}/cache",
        "--cache-copy-layers",
        f"--insecure-registry={REGISTRY}",
        f"--skip-tls-verify-registry={REGISTRY}",
        "--snapshot-mode=redo",
        "--compressed-caching=false",
        "--log-timestamp",
        "--digest-file=/dev/termination-log",
    ]
    container = {
        "name": "kaniko",
        "image": image,
        "args": arguments,
        "resources": {"requests": {"cpu": "100m", "memory": "256Mi"}, "limits": {"memory": "4Gi"}},
        "securityContext": {
            "runAsUser": 0,
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"], "add": ["CHOWN", "FOWNER", "DAC_OVERRIDE"]},
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "volumeMounts": [
            {"name": "context", "mountPath": "/workspace", "readOnly": True},
            {"name": "credential", "mountPath": "/kaniko/.docker", "readOnly": True},
        ],
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": NAMESPACE,
            "labels": {"app.kubernetes.io/name": "service-image"},
        },
        "spec": {
            "restartPolicy": "Never",
            "automountServiceAccountToken": False,
            "enableServiceLinks": False,
            "activeDeadlineSeconds": _BUILD_TIMEOUT_SECONDS,
            "containers": [container],
            "volumes": [
                {"name": name, "hostPath": {"path": str(path), "type": "Directory"}}
                for name, path in (("context", context), ("credential", credential))
            ],
        },
    }


def build(
    kube: HttpKubeApi,
    step: Step,
    log: Path,
    context: Path,
    credential: Path,
    repository: str,
    base: str,
    image: str,
) -> str:
    """Return the pushed image's digest; write the log. Raises DevClusterError with Kaniko's last lines."""
    kube.create("/api/v1/namespaces", _NAMESPACE_OBJECT)
    pods = f"/api/v1/namespaces/{NAMESPACE}/pods"
    name = f"service-image-{uuid.uuid4().hex[:8]}"
    _create(kube, pods, pod(name, context, credential, repository, base, image))
    try:
        status = _wait_finished(kube, f"{pods}/{name}", step)
        text = kube.text(f"{pods}/{name}/log")
        log.write_text(text)
        digest = _digest(status)
        if status.get("phase") != "Succeeded" or digest is None:
            end = "\n".join(text.splitlines()[-15:])
            raise DevClusterError(f"The build of the service image failed. Last lines of {log}:\n{end}")
        return digest
    finally:
        kube.call("DELETE", f"{pods}/{name}?gracePeriodSeconds=0")


def _create(kube: HttpKubeApi, pods: str, body: dict[str, Any]) -> None:
    # A new namespace gets its service account with a delay; before that it admits no pod.
    for attempt in range(8):
        try:
            kube.call("POST", pods, body)
            return
        except KubeApiError as error:
            if error.status != 403 or attempt == 7:
                raise
            time.sleep(0.1 * 2**attempt)


def _wait_finished(kube: HttpKubeApi, path: str, step: Step) -> dict[str, Any]:
    deadline = time.monotonic() + _BUILD_TIMEOUT_SECONDS + 60
    pause = 0.1
    while time.monotonic() < deadline:
        status: dict[str, Any] = kube.call("GET", path)["status"]
        if status.get("phase") in ("Succeeded", "Failed"):
            return status
        step.detail = _status_text(kube, path, status)
        time.sleep(pause)
        pause = min(pause * 1.3, 0.5)
    raise DevClusterError(f"The build pod {path} did not finish within {_BUILD_TIMEOUT_SECONDS} s.")


def _status_text(kube: HttpKubeApi, path: str, status: dict[str, Any]) -> str:
    for container in status.get("containerStatuses", []):
        waiting = container["state"].get("waiting")
        if waiting:
            return f"{waiting.get('reason')} {waiting.get('message', '')}".strip()[:100]
    try:
        lines = kube.text(f"{path}/log?tailLines=1").split("] ", 1)
    except KubeApiError:
        return ""
    return lines[-1].strip()[:100]


def _digest(status: dict[str, Any]) -> str | None:
    for container in status.get("containerStatuses", []):
        message = str(container["state"].get("terminated", {}).get("message", "")).strip()
        if message.startswith("sha256:"):
            return message
    return None
