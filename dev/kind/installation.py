"""Crewyard on kind: images in the local registry, and the kustomization to apply.

Called by `dev.kind.kind`.
"""

import json
import os
from collections.abc import Mapping
from typing import Any

from dev.cluster import egress
from dev.cluster.credentials import SYSTEM_NAMESPACE
from dev.cluster.install import MANIFESTS
from dev.current import image as docker_image
from dev.current.options import OFFICIAL_IMAGES, PYTHON
from dev.images import images
from dev.kind import configuration, docker
from dev.progress import StepProgress
from dev.settings import CREWYARD_URL, REGISTRY, Settings

# Name and tag in the local registry, and the source image.
BASES = {
    version: ("library/python", image.partition(":")[2], image) for version, image in OFFICIAL_IMAGES.items()
}
KANIKO = ("crewyard/kaniko", "v1.28.3", "ghcr.io/osscontainertools/kaniko:v1.28.3")
_PUSH_SECONDS = 900


def mirror(image: tuple[str, str, str], progress: StepProgress) -> str:
    """Copy a public image to the local registry and return its digest there. Raises DevClusterError."""
    name, tag, source = image
    repository = f"{configuration.PUSH_REGISTRY}/{name}"
    with progress.step(f"image {source}"):
        docker_image.pull(source)
        docker.run("tag", source, f"{repository}:{tag}")
        docker.run("push", "--quiet", f"{repository}:{tag}", seconds=_PUSH_SECONDS)
    return cluster_reference(docker_image.pushed_reference(repository, f"{repository}:{tag}"))


def offered_pythons(environment: Mapping[str, str]) -> tuple[str, ...]:
    """Return the Pythons that crews may use: all, or those of CREWYARD_PYTHONS. Raises DevClusterError."""
    return images.choose_pythons(environment, tuple(BASES), BASES, "kind offers")


MODEL = {
    "namespace": "models",
    "service": "model",
    "podSelector": {"matchLabels": {"app": "model"}},
    "ports": [8080],
}
"""The model server of `make demo MODEL=1`, as manifests/overlays/dev has it."""


def cluster_reference(reference: str) -> str:
    """Return an image of the local registry by the name that nodes and pods use."""
    return reference.replace(f"{configuration.PUSH_REGISTRY}/", f"{REGISTRY}/", 1)


def values(
    service: str, bases: Mapping[str, str], kaniko: str, gateway: str, networks: list[str]
) -> dict[str, str]:
    """Return the entries of ConfigMap `crewyard-config` that differ from the base's."""
    return {
        "CREWYARD_SERVICE_IMAGE": service,
        "CREWYARD_KANIKO_IMAGE": kaniko,
        "CREWYARD_BASE_IMAGES": json.dumps(bases),
        "CREWYARD_REGISTRY": REGISTRY,
        "CREWYARD_REGISTRY_INSECURE": "true",
        "CREWYARD_PUBLIC_URL": CREWYARD_URL,
        # This machine serves git to the demo and the tests; nodes, pods and Services stay blocked.
        "CREWYARD_NET_ALLOW": f"{gateway}/32",
        "CREWYARD_NET_DENY": ",".join([*networks, "10.244.0.0/16", "10.96.0.0/16"]),
        "CREWYARD_RUN_EGRESS": json.dumps([MODEL]),
    }


def kustomization(base: str, service: str, literals: dict[str, str]) -> dict[str, Any]:
    """Return manifests/base with the service's image and port. `base` is relative to the kustomization."""
    repository, _, digest = service.partition("@")
    port = [
        {"op": "add", "path": "/spec/type", "value": "NodePort"},
        {"op": "add", "path": "/spec/ports/0/nodePort", "value": 30080},
    ]
    return {
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "resources": [base, egress.FILE],
        "images": [{"name": "crewyard/service", "newName": repository, "digest": digest}],
        "configMapGenerator": [
            {
                "name": "crewyard-config",
                "namespace": SYSTEM_NAMESPACE,
                "behavior": "merge",
                "literals": [f"{name}={value}" for name, value in literals.items()],
            }
        ],
        "patches": [{"patch": json.dumps(port), "target": {"kind": "Service", "name": "crewyard-api"}}],
    }


def policy(gateway: str, networks: list[str]) -> dict[str, Any]:
    """Return the policy that lets builds reach only the registry and the servers of this machine."""
    ports = (*egress.REGISTRY_PORTS, *egress.SERVED_PORTS)
    return egress.policy(
        [
            egress.allow_networks(networks, egress.REGISTRY_PORTS),
            egress.allow_networks([f"{gateway}/32"], ports),
        ]
    )


def write(own: Settings, environment: Mapping[str, str], gateway: str, progress: StepProgress) -> str:
    """Push all images to the local registry and write the kustomization; return its directory."""
    repository = f"{configuration.PUSH_REGISTRY}/crewyard/service"
    service = cluster_reference(
        docker_image.build(own, repository, BASES[PYTHON][2], progress, insecure=True)
    )
    networks = configuration.subnets(docker.inspect("network", configuration.NETWORK) or [{}])
    literals = values(
        service,
        {version: mirror(BASES[version], progress) for version in offered_pythons(environment)},
        mirror(KANIKO, progress),
        gateway,
        networks,
    )
    directory = own.configuration / "deploy"
    directory.mkdir(parents=True, exist_ok=True)
    base = os.path.relpath(MANIFESTS / "base", directory)
    (directory / egress.FILE).write_text(json.dumps(policy(gateway, networks), indent=2))
    text = json.dumps(kustomization(base, service, literals), indent=2)
    (directory / "kustomization.yaml").write_text(text)
    return str(directory)
