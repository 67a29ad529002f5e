"""What build pods reach in private networks besides what manifests/base lets through. Pure.

Called for clusters whose network enforces policies and whose registry, or this
machine, has a private address: kind, and the current context's.
"""

from collections.abc import Iterable
from typing import Any

FILE = "network-policies.json"
REGISTRY_PORTS: tuple[dict[str, Any], ...] = ({"protocol": "TCP", "port": 5000},)
# What tests and the demonstration serve: git and package indexes. Kubelet and apiserver are not among these.
SERVED_PORTS: tuple[dict[str, Any], ...] = ({"protocol": "TCP", "port": 20000, "endPort": 65535},)
_BUILDS = {"key": "app.kubernetes.io/component", "operator": "In", "values": ["build", "prune"]}


def allow_networks(networks: Iterable[str], ports: Iterable[dict[str, Any]] = ()) -> dict[str, Any]:
    """A rule that lets through what goes to these networks; without ports, to all of them."""
    rule: dict[str, Any] = {"to": [{"ipBlock": {"cidr": network}} for network in networks]}
    port_list = list(ports)
    return rule | ({"ports": port_list} if port_list else {})


def policy(rules: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """The NetworkPolicy of build pods with these rules."""
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": {"name": "ground-builds", "namespace": "crews"},
        "spec": {
            "podSelector": {"matchExpressions": [_BUILDS]},
            "policyTypes": ["Egress"],
            "egress": list(rules),
        },
    }
