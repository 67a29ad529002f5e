"""Settings of the installed service, and the namespace of a test bed. Called by `tests.campaign.testbed`."""

import os
from typing import Any

import pytest

from crds.kinds import SECRET, Kind
from dev.registry import access
from dev.settings import from_environment
from kube.client import KubeClient

SYSTEM = "crewyard-system"
PUSH = "registry-push"
CONFIG_MAP = Kind("", "v1", "configmaps", "ConfigMap")
TAKEN_OVER = (
    "CREWYARD_SERVICE_IMAGE",
    "CREWYARD_KANIKO_IMAGE",
    "CREWYARD_BASE_IMAGES",
    "CREWYARD_REGISTRY",
    "CREWYARD_REGISTRY_INSECURE",
    "CREWYARD_NET_ALLOW",
    "CREWYARD_NET_DENY",
)
"""Settings that a second service on the same cluster needs too."""


async def installed(kube: KubeClient) -> dict[str, str]:
    """Return the installed service's settings of registry, images and networks."""
    maps = await kube.call("GET", CONFIG_MAP.path(SYSTEM))
    for found in maps["items"]:
        data = found.get("data") or {}
        if "CREWYARD_SERVICE_IMAGE" in data:
            return {name: data[name] for name in TAKEN_OVER if name in data}
    return pytest.fail("the service is not installed: run `make up` first")


async def make(kube: KubeClient, namespace: str) -> None:
    """The namespace, with what its builds push with. Raises KubeError."""
    await kube.call("POST", "/api/v1/namespaces", body=_namespace(namespace))
    await kube.create(SECRET, _push_secret(namespace))


def _push_secret(namespace: str) -> dict[str, Any]:
    """What builds of the test bed push with, to repositories of its namespace alone."""
    config = access.docker_config(from_environment(os.environ), namespace)
    kind = "kubernetes.io/dockerconfigjson"
    return {"metadata": {"name": PUSH}, "type": kind, "stringData": {".dockerconfigjson": config}}


def _namespace(name: str) -> dict[str, Any]:
    labels = {
        "crewyard.dev/campaign": "true",
        "pod-security.kubernetes.io/enforce": "baseline",
        "pod-security.kubernetes.io/warn": "restricted",
    }
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}
