"""Installs the service: manifests/overlays/dev with the image and the addresses that only the ground knows.

Called by `up` as its last step and by `make deploy`.
"""

import json
import os
import time
from pathlib import Path
from typing import Any

from dev import command, credentials, service_image
from dev.errors import GroundError
from dev.images import PYTHON, Images
from dev.kube import Kube
from dev.progress import Progress
from dev.settings import (
    BRIDGE_ADDRESS,
    FACADE_URL,
    POD_NETWORK,
    REGISTRY,
    REPOSITORY,
    SERVICE_NETWORK,
    Settings,
)

MANIFESTS = REPOSITORY / "manifests"
OVERLAY = MANIFESTS / "overlays" / "dev"
_NAME = "crewyard/service"
_ROLLOUT_SECONDS = 180
_SERVICE_USER = 65532
_DEPLOYMENTS = f"/apis/apps/v1/namespaces/{credentials.SYSTEM_NAMESPACE}/deployments"
_PODS = f"/api/v1/namespaces/{credentials.SYSTEM_NAMESPACE}/pods"


def config_values(image: str, images: Images) -> dict[str, str]:
    """The entries of ConfigMap `crewyard-config` that depend on this ground."""
    return {
        "CREWYARD_SERVICE_IMAGE": image,
        "CREWYARD_KANIKO_IMAGE": images.kaniko,
        "CREWYARD_BASE_IMAGES": json.dumps({PYTHON: images.base}),
        "CREWYARD_REGISTRY": REGISTRY,
        "CREWYARD_REGISTRY_INSECURE": "true",
        "CREWYARD_PUBLIC_URL": FACADE_URL,
        # The host serves git to the demonstration and the tests; the rest of pods and Services stays closed.
        "CREWYARD_NET_ALLOW": f"{BRIDGE_ADDRESS}/32",
        "CREWYARD_NET_DENY": f"{POD_NETWORK},{SERVICE_NETWORK}",
    }


def kustomization(overlay: str, image: str, values: dict[str, str], volume: Path) -> dict[str, Any]:
    """The kustomization that is applied. `overlay` is a path relative to it, `volume` the api's directory."""
    repository, _, digest = image.partition("@")
    directory = [{"op": "replace", "path": "/spec/hostPath/path", "value": str(volume)}]
    return {
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "resources": [overlay],
        "images": [{"name": _NAME, "newName": repository, "digest": digest}],
        "configMapGenerator": [
            {
                "name": "crewyard-config",
                "namespace": credentials.SYSTEM_NAMESPACE,
                "behavior": "merge",
                "literals": [f"{name}={value}" for name, value in values.items()],
            }
        ],
        "patches": [
            {"patch": json.dumps(directory), "target": {"kind": "PersistentVolume", "name": "crewyard-data"}}
        ],
    }


def make_volume(settings: Settings) -> Path:
    """The directory of the node that is the api's volume; its owner is the user that the service runs as."""
    path = settings.data / "volumes" / "crewyard-data"
    if not path.is_dir():
        path.mkdir(parents=True)
        path.chmod(0o750)
        os.chown(path, _SERVICE_USER, _SERVICE_USER)
    return path


def rollout(deployment: dict[str, Any]) -> str | None:
    """None when the Deployment runs as it is specified, else how far it is."""
    wanted = deployment["spec"].get("replicas", 1)
    status = deployment.get("status", {})
    if status.get("observedGeneration", 0) < deployment["metadata"]["generation"]:
        return "not seen yet"
    updated, total = status.get("updatedReplicas", 0), status.get("replicas", 0)
    available = status.get("availableReplicas", 0)
    if updated == wanted and total == wanted and available == wanted:
        return None
    return f"{available} of {wanted} ready"


def _trouble(kube: Kube) -> str:
    """What the pods of the service wait for or died of, newest first."""
    lines = []
    for pod in kube.call("GET", _PODS)["items"]:
        for status in pod["status"].get("containerStatuses", []):
            waiting = status["state"].get("waiting")
            ended = status.get("lastState", {}).get("terminated") or status["state"].get("terminated")
            reason = waiting or ended
            if reason:
                said = f"{reason.get('reason')} {reason.get('message', '')}".strip()
                exit_code = f" (exit {ended['exitCode']})" if ended else ""
                lines.append(f"{pod['metadata']['name']}: {said}{exit_code}")
    return "\n".join(lines)


def _wait(kube: Kube, progress: Progress) -> None:
    deadline = time.monotonic() + _ROLLOUT_SECONDS
    with progress.step("rollout") as step:
        while True:
            states = {
                one["metadata"]["name"]: rollout(one) for one in kube.call("GET", _DEPLOYMENTS)["items"]
            }
            waiting = {name: state for name, state in states.items() if state}
            if not waiting:
                step.detail = ", ".join(sorted(states))
                return
            step.detail = ", ".join(f"{name} {state}" for name, state in sorted(waiting.items()))
            if time.monotonic() > deadline:
                raise GroundError(
                    f"The service did not start within {_ROLLOUT_SECONDS} s: {step.detail}\n{_trouble(kube)}\n"
                    f"See kubectl -n {credentials.SYSTEM_NAMESPACE} logs deployment/<name>"
                )
            time.sleep(0.25)


def deploy(settings: Settings, images: Images, progress: Progress) -> None:
    """Builds the image if the code changed, applies the manifests, waits for all. Raises GroundError."""
    if not OVERLAY.is_dir():
        progress.say("The service is not installed: there is no manifests/overlays/dev in this repository.")
        return
    kube = Kube(settings.kubeconfig)
    image = service_image.ensure(settings, kube, images, progress)
    credentials.ensure(settings, kube, progress)
    directory = settings.configuration / "deploy"
    directory.mkdir(parents=True, exist_ok=True)
    values = config_values(image, images)
    wanted = kustomization(os.path.relpath(OVERLAY, directory), image, values, make_volume(settings))
    (directory / "kustomization.yaml").write_text(json.dumps(wanted, indent=2))
    with progress.step("kubectl apply") as step:
        kubectl = [str(settings.bin / "kubectl"), f"--kubeconfig={settings.kubeconfig}", "apply"]
        kubectl += [
            "--server-side",
            "--force-conflicts",
            "--field-manager=crewyard-deploy",
            "-k",
            str(directory),
        ]
        lines = command.ask(kubectl, seconds=120).splitlines()
        step.detail = f"{len(lines)} objects"
    _wait(kube, progress)
