"""Extra egress rules for build pods in private networks, added to those of manifests/base. Pure.

Called for clusters that enforce network policies and whose registry, or this machine, has a private address:
kind and the current context's cluster.
"""

from collections.abc import Iterable
from typing import Any

FILE = "network-policies.json"
REGISTRY_PORTS: tuple[dict[str, Any], ...] = ({"protocol": "TCP", "port": 5000},)
# Git servers and package indexes of tests and the demo. Excludes the ports of kubelet and apiserver.
SERVED_PORTS: tuple[dict[str, Any], ...] = ({"protocol": "TCP", "port": 20000, "endPort": 65535},)
_BUILDS = {"key": "app.kubernetes.io/component", "operator": "In", "values": ["build", "prune"]}


def allow_networks(networks: Iterable[str], ports: Iterable[dict[str, Any]] = ()) -> dict[str, Any]:
    """Return an egress rule for these networks; without ports it allows all ports."""
    rule: dict[str, Any] = {"to": [{"ipBlock": {"cidr": network}} for network in networks]}
    port_list = list(ports)
    return rule | ({"ports": port_list} if port_list else {})


def policy(rules: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """Return the NetworkPolicy of build pods with these rules."""
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
