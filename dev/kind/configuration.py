"""Configuration of kind, its node and Docker. Pure; applied by `dev.kind.nodes`."""

import json
import re
from collections.abc import Mapping
from typing import Any

from dev.cluster import quota
from dev.errors import DevClusterError
from dev.settings import HOST_NAME, LOOPBACK, REGISTRY, REGISTRY_HOST, REGISTRY_PORT

VERSION = "0.33.0"
NODE_IMAGE = "kindest/node:v1.37.0@sha256:a1ed56cfb0e7b93589bdf97c8cd566405a265939e3620fc4f5de89adff580ae5"
CLUSTER = "crewyard"
NODE = f"{CLUSTER}-control-plane"
NETWORK = "kind"
CLUSTER_LABEL = "io.x-k8s.kind.cluster"
"""kind's label of every node's container; its value is the cluster's name."""
IMAGE_VARIABLE = "CREWYARD_KIND_IMAGE"
WORKERS_VARIABLE = "CREWYARD_KIND_WORKERS"
WORKERS_MAX = 8
REGISTRY_IMAGE = "registry:3.0.0"
REGISTRY_CONTAINER = "crewyard-registry"
VOLUME = "crewyard-registry"
OWNER = "dev.crewyard.state"
"""Label of the volume; its value is the state directory that owns the containers."""
# Docker pushes over plain HTTP only to loopback, so this machine and the pods use different addresses.
PUSH_REGISTRY = "localhost:5001"
HOSTS_DIRECTORY = f"/etc/containerd/certs.d/{REGISTRY}"
_NODE_PORT = 30080
_BEGIN, _END = "# crewyard", "# end of crewyard"


def workers(environment: Mapping[str, str]) -> int:
    """Return how many workers a new cluster gets besides its control plane. Raises DevClusterError."""
    text = environment.get(WORKERS_VARIABLE, "").strip() or "0"
    if not text.isascii() or not text.isdigit() or int(text) > WORKERS_MAX:
        raise DevClusterError(f"{WORKERS_VARIABLE} is {text!r}; set it to a number from 0 to {WORKERS_MAX}.")
    return int(text)


def node_image(environment: Mapping[str, str]) -> str:
    """Return the image of a new cluster's nodes."""
    return environment.get(IMAGE_VARIABLE, "").strip() or NODE_IMAGE


def cluster(image: str = NODE_IMAGE, workers: int = 0) -> dict[str, Any]:
    """Return kind's configuration: the API server's port on loopback, and a process limit per pod.

    Without workers, the control plane runs all pods.

    Two features need no setting: kind's CNI enforces network policies since 0.24, and containerd reads the
    registry hosts directory since 0.27.
    """
    kubelet = {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "podPidsLimit": 1024,
    }
    port_mapping = {
        "containerPort": _NODE_PORT,
        "hostPort": _NODE_PORT,
        "listenAddress": LOOPBACK,
        "protocol": "TCP",
    }
    node = {
        "role": "control-plane",
        "image": image,
        "extraPortMappings": [port_mapping],
        "kubeadmConfigPatches": [json.dumps(kubelet)],
    }
    return {
        "apiVersion": "kind.x-k8s.io/v1alpha4",
        "kind": "Cluster",
        "name": CLUSTER,
        "kubeadmConfigPatchesJSON6902": [_controller_manager_patch()],
        "nodes": [node, *({"role": "worker", "image": image} for _ in range(workers))],
    }


def _controller_manager_patch() -> dict[str, str]:
    add = [
        {"op": "add", "path": "/controllerManager/extraArgs/-", "value": {"name": name, "value": value}}
        for name, value in quota.SYNC_PERIOD.items()
    ]
    return {
        "group": "kubeadm.k8s.io",
        "version": "v1beta4",
        "kind": "ClusterConfiguration",
        "patch": json.dumps(add),
    }


def hosts_file() -> str:
    """Return containerd's configuration for the registry: its container's name, over plain HTTP."""
    return f'[host."http://{REGISTRY_CONTAINER}:{REGISTRY_PORT}"]\n  capabilities = ["pull", "resolve"]\n'


def registry_arguments(gateway: str) -> list[str]:
    """Return the `docker run` arguments of the registry. It listens on loopback and on the nodes' network."""
    return [
        "--detach",
        "--restart=unless-stopped",
        f"--name={REGISTRY_CONTAINER}",
        f"--network={NETWORK}",
        "--env=REGISTRY_STORAGE_DELETE_ENABLED=true",
        f"--volume={VOLUME}:/var/lib/registry",
        f"--publish=127.0.0.1:{PUSH_REGISTRY.rpartition(':')[2]}:5000",
        f"--publish={gateway}:{REGISTRY_PORT}:5000",
        REGISTRY_IMAGE,
    ]


def registry_hosting() -> dict[str, Any]:
    """Return the ConfigMap that announces a cluster's local registry to tools (KEP-1755)."""
    hosting = f'host: "{PUSH_REGISTRY}"\nhostFromClusterNetwork: "{REGISTRY}"\n'
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "local-registry-hosting", "namespace": "kube-public"},
        "data": {"localRegistryHosting.v1": hosting},
    }


def with_hosts(corefile: str, gateway: str, registry: str) -> str:
    """Return CoreDNS' configuration with the host names of this machine and the registry. Idempotent.

    Raises ValueError if the configuration differs from what kubeadm writes.
    """
    without_block = re.sub(rf"[ \t]*{_BEGIN}\n.*?{_END}\n", "", corefile, flags=re.DOTALL)
    forward_line = re.search(r"^([ \t]*)forward \. ", without_block, re.MULTILINE)
    if not forward_line:
        raise ValueError("CoreDNS has no forward plugin")
    lines = (
        _BEGIN,
        "hosts {",
        f"    {gateway} {HOST_NAME}",
        f"    {registry} {REGISTRY_HOST}",
        "    fallthrough",
        "}",
        _END,
    )
    block = "".join(f"{forward_line[1]}{line}\n" for line in lines)
    return without_block[: forward_line.start()] + block + without_block[forward_line.start() :]


def gateway(network: list[dict[str, Any]]) -> str | None:
    """Return this machine's IPv4 address in the network described by `docker network inspect`."""
    for config in network[0].get("IPAM", {}).get("Config") or []:
        address = str(config.get("Gateway", ""))
        if re.fullmatch(r"\d+\.\d+\.\d+\.\d+", address):
            return address
        subnet = re.fullmatch(r"(\d+\.\d+\.\d+)\.0/\d+", str(config.get("Subnet", "")))
        if subnet and not address:
            return f"{subnet[1]}.1"
    return None


def subnets(network: list[dict[str, Any]]) -> list[str]:
    """Return the IPv4 subnets of Docker's network, which the nodes and the registry use."""
    addresses = [str(config.get("Subnet", "")) for config in network[0].get("IPAM", {}).get("Config") or []]
    return [address for address in addresses if re.fullmatch(r"[\d.]+/\d+", address)]
