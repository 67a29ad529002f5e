"""Traffic that the shipped network policies allow, observed by listeners on every target address."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[3]
FILES = ("manifests/base/network-policies.yaml", "manifests/overlays/dev/network-policies.yaml")
COMPONENT = "app.kubernetes.io/component"
SERVICE = {"app.kubernetes.io/name": "crewyard"}
BRIDGE = "10.213.0.1"
API, CONTROLLER, OUTSIDER, NEIGHBOUR, INTERNET = (
    "10.213.1.4",
    "10.213.1.5",
    "10.213.1.6",
    "10.213.1.8",
    "9.9.9.9",
)


def pod(
    name: str, namespace: str, address: str, labels: dict[str, str] | None = None, **more: Any
) -> dict[str, Any]:
    return {"name": name, "namespace": namespace, "address": address, "labels": labels or {}, **more}


PODS = [
    pod("run", "crews", "10.213.1.1", {COMPONENT: "run"}, extra_addresses=["10.213.9.9"]),
    pod("build", "crews", "10.213.1.2", {COMPONENT: "build"}),
    pod("plain", "crews", "10.213.1.3"),
    pod("api", "crewyard-system", API, {**SERVICE, COMPONENT: "api"}),
    pod("controller", "crewyard-system", CONTROLLER, {**SERVICE, COMPONENT: "controller"}),
    pod("outsider", "elsewhere", OUTSIDER),
    pod("neighbour", "crews", NEIGHBOUR, {COMPONENT: "run"}),
    # A pod that the enforcer does not know.
    pod("unknown", "elsewhere", "10.213.1.7", unknown=True),
]
NAMESPACES = {
    name: {"kubernetes.io/metadata.name": name} for name in ("crews", "crewyard-system", "elsewhere")
}
TARGETS = {
    "names": (BRIDGE, 53, "udp"),
    "names by tcp": (BRIDGE, 53, "tcp"),
    "apiserver": (BRIDGE, 6443, "tcp"),
    "kubelet": (BRIDGE, 10250, "tcp"),
    "registry": (BRIDGE, 5000, "tcp"),
    "served by the host": (BRIDGE, 40000, "tcp"),
    "etcd, if it listened there": (BRIDGE, 2379, "tcp"),
    "the host's other address": ("192.0.2.2", 22, "tcp"),
    "metadata": ("169.254.169.254", 80, "tcp"),
    "metadata by udp": ("169.254.169.254", 80, "udp"),
    "API server": (API, 8080, "tcp"),
    "API server, another port": (API, 9999, "tcp"),
    "controller": (CONTROLLER, 9090, "tcp"),
    "neighbour": (NEIGHBOUR, 7000, "tcp"),
    "neighbour by udp": (NEIGHBOUR, 7000, "udp"),
    "outsider": (OUTSIDER, 7000, "tcp"),
    "internet": (INTERNET, 443, "tcp"),
    "internet by udp": (INTERNET, 443, "udp"),
    "a private network beyond": ("172.20.0.7", 443, "tcp"),
}
ALLOWED = {
    "run": {"names", "names by tcp", "API server", "internet", "internet by udp"},
    "build": {
        *("names", "names by tcp", "API server", "controller", "registry", "served by the host"),
        *("internet", "internet by udp"),
    },
    "plain": set(),
    # No policy selects it: only targets with an ingress policy refuse it.
    "outsider": set(TARGETS)
    - {"API server, another port", "controller", "neighbour", "neighbour by udp", "outsider"},
    "unknown": set(),
}


def policies(more: list[dict[str, Any]] | None = None) -> list[dict[str, Any]]:
    found = [one for name in FILES for one in yaml.safe_load_all((ROOT / name).read_text())]
    return [*found, *(more or [])]


def probes_arrived(
    probes: list[dict[str, Any]], enforced: bool, policy_objects: list[dict[str, Any]]
) -> list[bool]:
    """Return for each probe whether a listener received it."""
    scenario = {
        "pods": [dict(pod) for pod in PODS],
        "policies": policy_objects,
        "namespaces": NAMESPACES,
        "probes": probes,
        "machine": ["169.254.169.254", "192.0.2.2"],
        "world": [INTERNET, "172.20.0.7"],
        "enforced": enforced,
    }
    done = subprocess.run(
        ["unshare", "--net", "--mount", sys.executable, "-m", "tests.cluster.network_policy.virtual_network"],
        input=json.dumps(scenario),
        capture_output=True,
        text=True,
        timeout=240,
        cwd=ROOT,
    )
    assert done.returncode == 0, done.stderr
    found: list[bool] = json.loads(done.stdout)
    return found


@pytest.fixture(autouse=True)
def _root() -> None:
    if os.geteuid() != 0 or shutil.which("unshare") is None:
        pytest.skip("only root makes network namespaces")


def matrix(senders: list[str]) -> list[dict[str, Any]]:
    return [
        {"from": sender, "target": name, "to": to, "port": port, "protocol": protocol}
        for sender in senders
        for name, (to, port, protocol) in TARGETS.items()
        if not (sender == "outsider" and to == OUTSIDER)
    ]


def test_without_rules_every_probe_arrives():
    probes = matrix(list(ALLOWED))
    assert [
        one for one, seen in zip(probes, probes_arrived(probes, False, policies()), strict=True) if not seen
    ] == []


def test_rules_allow_exactly_what_policies_allow():
    probes = matrix(list(ALLOWED))
    seen = probes_arrived(probes, True, policies())
    for sender, expected in ALLOWED.items():
        arrived = {
            one["target"]
            for one, received in zip(probes, seen, strict=True)
            if received and one["from"] == sender
        }
        assert arrived == expected, sender


def test_service_egress_allows_no_private_network_but_the_apiserver():
    service = list(yaml.safe_load_all((ROOT / "manifests/service-egress/service-egress.yaml").read_text()))
    own = {"api": API, "controller": CONTROLLER}
    probes = [one for one in matrix(list(own)) if one["to"] != own[one["from"]]]
    before = probes_arrived(probes, True, policies())
    seen = probes_arrived(probes, True, policies(service))
    for sender in own:
        arrived, arrived_before = (
            {
                one["target"]
                for one, received in zip(probes, received_list, strict=True)
                if received and one["from"] == sender
            }
            for received_list in (seen, before)
        )
        # The kube-apiserver's address is unknown, so https to private networks stays open.
        assert arrived - {"API server"} == {"apiserver", "internet", "a private network beyond"}, sender
        assert {"metadata", "kubelet", "etcd, if it listened there", "registry"} <= arrived_before


def test_spoofed_source_and_ipv6_are_blocked():
    probes: list[dict[str, Any]] = [
        {"from": "run", "to": API, "port": 8080, "source": "10.213.9.9"},
        {"from": "run", "to": INTERNET, "port": 443, "source": "10.213.9.9"},
        {"from": "run", "to": "ip6:host", "port": 6443},
        {"from": "run", "to": "ip6:neighbour", "port": 7000},
    ]
    assert probes_arrived(probes, False, policies()) == [True] * 4
    assert probes_arrived(probes, True, policies()) == [False] * 4


def test_project_policy_allows_further_egress():
    more = {
        "metadata": {"namespace": "crews", "name": "models"},
        "spec": {
            "podSelector": {"matchLabels": {COMPONENT: "run"}},
            "policyTypes": ["Egress"],
            "egress": [
                {
                    "to": [{"ipBlock": {"cidr": "172.20.0.0/16"}}],
                    "ports": [{"protocol": "TCP", "port": 443}],
                }
            ],
        },
    }
    probes: list[dict[str, Any]] = [
        {"from": "run", "to": "172.20.0.7", "port": 443},
        {"from": "run", "to": "172.20.0.7", "port": 444},
        {"from": "build", "to": "172.20.0.7", "port": 443},
    ]
    assert probes_arrived(probes, True, policies([more])) == [True, False, False]


def test_unsupported_policy_denies_its_pods():
    named = {
        "metadata": {"namespace": "elsewhere", "name": "by-name"},
        "spec": {
            "podSelector": {},
            "policyTypes": ["Egress"],
            "egress": [{"ports": [{"protocol": "TCP", "port": "http"}]}],
        },
    }
    probes: list[dict[str, Any]] = [{"from": "outsider", "to": INTERNET, "port": 443}]
    assert probes_arrived(probes, True, policies()) == [True]
    assert probes_arrived(probes, True, policies([named])) == [False]


def test_remove_deletes_all_nftables_tables():
    script = (
        "import subprocess; from dev.network_policy import nftables, ruleset; nftables.prepare(); "
        "nftables.apply(ruleset.text(ruleset.ClusterSnapshot([], {}, []))); "
        "tables = lambda: subprocess.run(['nft', 'list', 'tables'], capture_output=True).stdout.decode(); "
        "assert tables().count('crewyard') == 2; nftables.remove(); nftables.remove(); print(tables())"
    )
    done = subprocess.run(
        ["unshare", "--net", sys.executable, "-c", script],
        capture_output=True,
        text=True,
        timeout=60,
        cwd=ROOT,
    )
    assert (done.returncode, done.stdout.strip()) == (0, ""), done.stderr
