"""Kustomization for the current context's cluster: manifests/base plus the given options. Pure."""

import json
from typing import Any

from dev.cluster import egress
from dev.cluster.credentials import SYSTEM_NAMESPACE
from dev.current.options import PULL_SECRET, InstallOptions, config_values

CREWS_NAMESPACE = "crews"
INSTALLED_BY_LABEL = {"crewyard.dev/installed-by": "make-up"}
"""Label on all objects that `make up` creates; `make down` finds them by it."""
# Placeholder while no image is known; used to list objects, never applied.
NO_IMAGE = f"crewyard/service@sha256:{'0' * 64}"


def kustomization(base: str, options: InstallOptions, image: str) -> dict[str, Any]:
    """Return the kustomization to apply. `base` is the path of manifests/base relative to it."""
    repository, _, digest = image.partition("@")
    patches = []
    if options.registry_auth:
        pull = [
            {"op": "add", "path": "/spec/template/spec/imagePullSecrets", "value": [{"name": PULL_SECRET}]}
        ]
        patches.append({"patch": json.dumps(pull), "target": {"kind": "Deployment", "group": "apps"}})
    if options.storage_class:
        storage = [{"op": "add", "path": "/spec/storageClassName", "value": options.storage_class}]
        target = {"kind": "PersistentVolumeClaim", "name": "crewyard-data"}
        patches.append({"patch": json.dumps(storage), "target": target})
    return {
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "resources": [base, egress.FILE],
        "images": [{"name": "crewyard/service", "newName": repository, "digest": digest}],
        "labels": [{"pairs": INSTALLED_BY_LABEL, "includeSelectors": False}],
        "configMapGenerator": [
            {
                "name": "crewyard-config",
                "namespace": SYSTEM_NAMESPACE,
                "behavior": "merge",
                "literals": [f"{name}={value}" for name, value in config_values(options, image).items()],
            }
        ],
        "patches": patches,
    }


def egress_rules(options: InstallOptions) -> list[dict[str, Any]]:
    """Return the egress of builds to private networks: the configured ones and this machine's servers."""
    rules = [egress.allow_networks(options.egress)] if options.egress else []
    if options.host_address:
        rules.append(egress.allow_networks([f"{options.host_address}/32"], egress.SERVED_PORTS))
    return rules


def pull_secrets(options: InstallOptions) -> list[dict[str, Any]]:
    """Return the registry credentials for crews and the service; empty if none are set."""
    if not options.registry_auth:
        return []
    return [
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "type": "kubernetes.io/dockerconfigjson",
            "metadata": {"name": PULL_SECRET, "namespace": namespace, "labels": INSTALLED_BY_LABEL},
            "stringData": {".dockerconfigjson": options.registry_auth},
        }
        for namespace in (SYSTEM_NAMESPACE, CREWS_NAMESPACE)
    ]
