"""Installation of Crewyard: manifests/overlays/dev plus the image and addresses of this dev cluster.

Called by `up` as its last step and by `make deploy`.
"""

import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from dev import files
from dev.cluster import credentials, live_reload, quota, rollout
from dev.cluster.kube_client import HttpKubeApi, KubeApi
from dev.cluster.kubectl import KubectlApi
from dev.images import service_image
from dev.images.images import ImageReferences, base_images
from dev.progress import StepProgress
from dev.registry import access
from dev.settings import (
    BRIDGE_ADDRESS,
    CREWYARD_URL,
    POD_NETWORK,
    REGISTRY,
    REPOSITORY,
    SERVICE_NETWORK,
    Settings,
)

MANIFESTS = REPOSITORY / "manifests"
OVERLAY = MANIFESTS / "overlays" / "dev"
_NAME = "crewyard/service"
_CONFIG_MAP_PREFIX = "crewyard-config-"
_SERVICE_USER = 65532
_CREWS_NAMESPACE = "crews"
_RUN_DEFINITION = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/runs.crewyard.dev"
_PUSH_SECRET = "registry-push"
_PUSH_FILE = "registry-push.json"


def config_values(image: str, images: ImageReferences, bases: Mapping[str, str]) -> dict[str, str]:
    """Return the entries of ConfigMap `crewyard-config` that depend on this dev cluster."""
    return {
        "CREWYARD_SERVICE_IMAGE": image,
        "CREWYARD_KANIKO_IMAGE": images.kaniko,
        "CREWYARD_BASE_IMAGES": json.dumps(bases),
        "CREWYARD_REGISTRY": REGISTRY,
        "CREWYARD_REGISTRY_INSECURE": "true",
        "CREWYARD_REGISTRY_SECRET": _PUSH_SECRET,
        "CREWYARD_PUBLIC_URL": CREWYARD_URL,
        # The host serves git to the demo and the tests on high ports; its kubelet and kube-apiserver,
        # pods and Services stay blocked.
        "CREWYARD_NET_ALLOW": f"{BRIDGE_ADDRESS}:20000-65535",
        "CREWYARD_NET_DENY": f"{POD_NETWORK},{SERVICE_NETWORK}",
    }


def kustomization(
    overlay: str, components: Iterable[str], image: str, values: dict[str, str], volume: Path
) -> dict[str, Any]:
    """Return the kustomization.

    `overlay` and `components` are paths relative to it, `volume` is the API server's directory.
    """
    repository, _, digest = image.partition("@")
    directory = [{"op": "replace", "path": "/spec/hostPath/path", "value": str(volume)}]
    return {
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "resources": [overlay, _PUSH_FILE],
        "components": list(components),
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


def push_secret(settings: Settings) -> dict[str, Any]:
    """Return the Secret that lets builds push, only to the repositories of crews."""
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "type": "kubernetes.io/dockerconfigjson",
        "metadata": {"name": _PUSH_SECRET, "namespace": _CREWS_NAMESPACE},
        "stringData": {".dockerconfigjson": access.docker_config(settings, _CREWS_NAMESPACE)},
    }


def unused_config_maps(config_maps: Iterable[str], deployments: Iterable[dict[str, Any]]) -> list[str]:
    """Return the service's ConfigMaps that none of its Deployments references.

    Each name contains a hash of the content, so every change of a setting creates another ConfigMap.
    """
    templates = json.dumps([deployment["spec"]["template"] for deployment in deployments])
    return [
        name for name in config_maps if name.startswith(_CONFIG_MAP_PREFIX) and f'"{name}"' not in templates
    ]


def delete_unused_config_maps(kube: KubeApi, labels: Mapping[str, str] = MappingProxyType({})) -> None:
    """Delete the service's unreferenced ConfigMaps that carry these labels."""
    path = f"/api/v1/namespaces/{credentials.SYSTEM_NAMESPACE}/configmaps"
    names = [
        config_map["metadata"]["name"]
        for config_map in kube.call("GET", path)["items"]
        if labels.items() <= (config_map["metadata"].get("labels") or {}).items()
    ]
    for name in unused_config_maps(names, kube.call("GET", rollout.DEPLOYMENTS)["items"]):
        kube.call("DELETE", f"{path}/{name}")


def ensure_volume(settings: Settings) -> Path:
    """Create the API server's volume directory on the node, owned by the service's user; return its path."""
    path = settings.data / "volumes" / "crewyard-data"
    if not path.is_dir():
        path.mkdir(parents=True)
        path.chmod(0o750)
        os.chown(path, _SERVICE_USER, _SERVICE_USER)
    return path


def deploy(
    settings: Settings,
    images: ImageReferences,
    progress: StepProgress,
    checkout: Path | None = None,
    components: Iterable[Path] = (),
) -> None:
    """Build the image if the code changed, apply the manifests and wait. Raises DevClusterError.

    With `checkout` the pods run the code of that directory instead of the image's. `components` are
    directories of kustomize components.
    """
    if not OVERLAY.is_dir():
        progress.print_line("The service is not installed: this repository has no manifests/overlays/dev.")
        return
    kube = HttpKubeApi(settings.kubeconfig)
    kubectl = KubectlApi(str(settings.bin / "kubectl"), settings.kubeconfig)
    # The quota controller needs up to 30 s to find new kinds; the image takes longer.
    if kube.get(_RUN_DEFINITION) is None:
        kubectl.apply("-k", str(REPOSITORY / "crds"))
    image = service_image.ensure(settings, kube, images, progress)
    credentials.ensure(settings, kube, progress)
    directory = settings.configuration / "deploy"
    directory.mkdir(parents=True, exist_ok=True)
    values = config_values(image, images, base_images(settings, images))
    overlay, *added = (os.path.relpath(path, directory) for path in (OVERLAY, *components))
    document = kustomization(overlay, added, image, values, ensure_volume(settings))
    if checkout is not None:
        volume = {"apiVersion": "v1", "kind": "List", "items": live_reload.volume(checkout)}
        (directory / "checkout.json").write_text(json.dumps(volume, indent=2))
        document["resources"].append("checkout.json")
        document["patches"] += [{"patch": json.dumps(patch)} for patch in live_reload.patches(checkout)]
    (directory / "kustomization.yaml").write_text(json.dumps(document, indent=2))
    files.write(directory / _PUSH_FILE, json.dumps(push_secret(settings)), files.PRIVATE_MODE)
    with progress.step("kubectl apply") as step:
        step.detail = f"{len(kubectl.apply('-k', str(directory)))} objects"
    rollout.wait_ready(kube, progress)
    rollout.wait_reachable(progress)
    quota.wait_counted(kube, progress)
    delete_unused_config_maps(kube)
