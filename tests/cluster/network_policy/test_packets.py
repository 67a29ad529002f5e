"""What the policies we ship let through, seen by listeners on every address that somebody might knock at."""

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
API, CONTROLLER, STRANGER, NEIGHBOUR, INTERNET = (
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
    pod("run", "crews", "10.213.1.1", {COMPONENT: "run"}, also=["10.213.9.9"]),
    pod("build", "crews", "10.213.1.2", {COMPONENT: "build"}),
    pod("plain", "crews", "10.213.1.3"),
    pod("api", "crewyard-system", API, {**SERVICE, COMPONENT: "api"}),
    pod("controller", "crewyard-system", CONTROLLER, {**SERVICE, COMPONENT: "controller"}),
    pod("stranger", "elsewhere", STRANGER),
    pod("neighbour", "crews", NEIGHBOUR, {COMPONENT: "run"}),
    # One whose start the enforcer was not told of.
    pod("unknown", "elsewhere", "10.213.1.7", unknown=True),
]
NAMESPACES = {
    name: {"kubernetes.io/metadata.name": name} for name in ("crews", "crewyard-system", "elsewhere")
}
PLACES = {
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
    "facade": (API, 8080, "tcp"),
    "facade, another port": (API, 9999, "tcp"),
    "controller": (CONTROLLER, 9090, "tcp"),
    "neighbour": (NEIGHBOUR, 7000, "tcp"),
    "neighbour by udp": (NEIGHBOUR, 7000, "udp"),
    "stranger": (STRANGER, 7000, "tcp"),
    "internet": (INTERNET, 443, "tcp"),
    "internet by udp": (INTERNET, 443, "udp"),
    "a private network beyond": ("172.20.0.7", 443, "tcp"),
}
OPEN = {
    "run": {"names", "names by tcp", "facade", "internet", "internet by udp"},
    "build": {
        *("names", "names by tcp", "facade", "controller", "registry", "served by the host"),
        *("internet", "internet by udp"),
    },
    "plain": set(),
    # No policy speaks of it: only the closed doors of others are closed to it.
    "stranger": set(PLACES)
    - {"facade, another port", "controller", "neighbour", "neighbour by udp", "stranger"},
    "unknown": set(),
}


def policies(more: list[dict[str, Any]] | None = None) -> list[dict[str, Any]]:
    found = [one for name in FILES for one in yaml.safe_load_all((ROOT / name).read_text())]
    return [*found, *(more or [])]


def heard(probes: list[dict[str, Any]], fenced: bool, given: list[dict[str, Any]]) -> list[bool]:
    """Which probes a listener saw."""
    asked = {
        "pods": [dict(one) for one in PODS],
        "policies": given,
        "namespaces": NAMESPACES,
        "probes": probes,
        "machine": ["169.254.169.254", "192.0.2.2"],
        "world": [INTERNET, "172.20.0.7"],
        "fenced": fenced,
    }
    done = subprocess.run(
        ["unshare", "--net", "--mount", sys.executable, "-m", "tests.cluster.network_policy.lab"],
        input=json.dumps(asked),
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
        {"from": sender, "place": name, "to": to, "port": port, "protocol": protocol}
        for sender in senders
        for name, (to, port, protocol) in PLACES.items()
        if not (sender == "stranger" and to == STRANGER)
    ]


def test_without_rules_every_probe_arrives():
    probes = matrix(list(OPEN))
    assert [one for one, seen in zip(probes, heard(probes, False, policies()), strict=True) if not seen] == []


def test_rules_allow_exactly_what_policies_allow():
    probes = matrix(list(OPEN))
    seen = heard(probes, True, policies())
    for sender, wanted in OPEN.items():
        arrived = {
            one["place"] for one, came in zip(probes, seen, strict=True) if came and one["from"] == sender
        }
        assert arrived == wanted, sender


def test_spoofed_source_and_ipv6_are_blocked():
    probes: list[dict[str, Any]] = [
        {"from": "run", "to": API, "port": 8080, "source": "10.213.9.9"},
        {"from": "run", "to": INTERNET, "port": 443, "source": "10.213.9.9"},
        {"from": "run", "to": "ip6:host", "port": 6443},
        {"from": "run", "to": "ip6:neighbour", "port": 7000},
    ]
    assert heard(probes, False, policies()) == [True] * 4
    assert heard(probes, True, policies()) == [False] * 4


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
    assert heard(probes, True, policies([more])) == [True, False, False]


def test_unsupported_policy_denies_its_pods():
    named = {
        "metadata": {"namespace": "elsewhere", "name": "by-name"},
        "spec": {
            "podSelector": {},
            "policyTypes": ["Egress"],
            "egress": [{"ports": [{"protocol": "TCP", "port": "http"}]}],
        },
    }
    probes: list[dict[str, Any]] = [{"from": "stranger", "to": INTERNET, "port": 443}]
    assert heard(probes, True, policies()) == [True]
    assert heard(probes, True, policies([named])) == [False]


def test_remove_deletes_all_nftables_tables():
    script = (
        "import subprocess; from dev.network_policy import nftables, ruleset; nftables.prepare(); "
        "nftables.apply(ruleset.text(ruleset.World([], {}, []))); "
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
