"""Policies to rules: selectors, unsupported policies, and the text for nft."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dev.network_policy import ruleset, selector
from dev.network_policy.addresses import Addresses, AddressOwner
from dev.network_policy.policy import NetworkPolicy, UnsupportedPolicy, deny_all, parse
from dev.network_policy.watcher import watched_pod


@pytest.mark.parametrize(
    ("given_selector", "labels", "expected"),
    [
        ({}, {}, True),
        ({"matchLabels": {"a": "1"}}, {"a": "1", "b": "2"}, True),
        ({"matchLabels": {"a": "1"}}, {"a": "2"}, False),
        ({"matchExpressions": [{"key": "a", "operator": "In", "values": ["1", "2"]}]}, {"a": "2"}, True),
        ({"matchExpressions": [{"key": "a", "operator": "In", "values": ["1"]}]}, {}, False),
        ({"matchExpressions": [{"key": "a", "operator": "NotIn", "values": ["1"]}]}, {}, True),
        ({"matchExpressions": [{"key": "a", "operator": "NotIn", "values": ["1"]}]}, {"a": "1"}, False),
        ({"matchExpressions": [{"key": "a", "operator": "Exists"}]}, {"a": ""}, True),
        ({"matchExpressions": [{"key": "a", "operator": "DoesNotExist"}]}, {"a": ""}, False),
        (
            {"matchLabels": {"a": "1"}, "matchExpressions": [{"key": "b", "operator": "Exists"}]},
            {"a": "1"},
            False,
        ),
    ],
)
def test_selectors(given_selector, labels, expected):
    assert selector.matches(given_selector, labels) is expected


def item(name: str = "one", **spec: Any) -> dict[str, Any]:
    return {"metadata": {"namespace": "crews", "name": name}, "spec": {"podSelector": {}, **spec}}


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"egress": [{"ports": [{"port": "http"}]}]}, "spec.egress[0].ports"),
        ({"ingress": [{"ports": [{"port": 1, "protocol": "SCTP"}]}]}, "SCTP"),
        ({"egress": [{"to": [{"ipBlock": {"cidr": "fd00::/8"}}]}]}, "only IPv4"),
        (
            {"egress": [{"to": [{"podSelector": {"matchExpressions": [{"key": "a", "operator": "Gt"}]}}]}]},
            "Gt",
        ),
        ({"podSelector": {"matchExpressions": [{"key": "a", "operator": "Lt", "values": ["1"]}]}}, "Lt"),
    ],
)
def test_an_unsupported_policy_is_reported_and_blocks(spec, message):
    with pytest.raises(UnsupportedPolicy, match=re.escape(message)):
        parse(item(**spec))
    instead = deny_all(item(**spec))
    assert instead.ingress == () and instead.egress in ((), None)
    assert selector.matches(instead.pods, {})


def test_directions_default_as_in_kubernetes():
    assert parse(item()).ingress == () and parse(item()).egress is None
    assert parse(item(egress=[{}])).egress is not None
    only = parse(item(policyTypes=["Egress"]))
    assert (only.ingress, only.egress) == (None, ())


def pod(address: str, namespace: str = "crews", **labels: str) -> ruleset.AddressedPod:
    return ruleset.AddressedPod(namespace, labels, address)


def rules(pods: list[ruleset.AddressedPod], *policies: NetworkPolicy) -> str:
    return ruleset.text(
        ruleset.ClusterSnapshot(pods, {"crews": {"name": "crews"}, "other": {"name": "other"}}, policies)
    )


def chain_of(text: str, direction: str, address: str) -> list[str] | None:
    """Return the chain of a pod in a direction; None if there is none."""
    body = re.search(rf"map {direction} {{\n.*?\n  }}", text, re.DOTALL)
    assert body
    match = re.search(rf"{re.escape(address)} : jump (\w+)", body[0])
    if not match:
        return None
    lines = re.search(rf"  chain {match[1]} {{\n(.*?)\n  }}", text, re.DOTALL)
    assert lines
    return [line.strip() for line in lines[1].splitlines()]


def test_pods_without_a_policy_are_known_and_open():
    text = rules([pod("10.213.0.9"), pod("10.213.0.10", "other")])
    assert "elements = { 10.213.0.9, 10.213.0.10 }" in text
    assert chain_of(text, "out", "10.213.0.9") is None


def test_policies_add_up_and_pods_with_the_same_share_a_chain():
    shut = parse(item("shut", policyTypes=["Egress", "Ingress"]))
    door = parse(
        item(
            "door",
            podSelector={"matchLabels": {"a": "1"}},
            egress=[
                {
                    "to": [
                        {"podSelector": {"matchLabels": {"b": "1"}}},
                        {"namespaceSelector": {"matchLabels": {"name": "other"}}},
                        {"ipBlock": {"cidr": "0.0.0.0/0", "except": ["10.0.0.0/8", "169.254.0.0/16"]}},
                        {"ipBlock": {"cidr": "10.9.0.0/16"}},
                    ],
                    "ports": [{"port": 80}, {"port": 32768, "endPort": 65535, "protocol": "UDP"}, {}],
                }
            ],
        )
    )
    pods = [
        pod("10.213.0.2", a="1"),
        pod("10.213.0.3", a="1"),
        pod("10.213.0.4", b="1"),
        pod("10.213.0.5", "other", b="1"),
    ]
    text = rules(pods, shut, door)
    assert chain_of(text, "out", "10.213.0.4") == ["drop"]
    assert chain_of(text, "out", "10.213.0.5") is None
    first = chain_of(text, "out", "10.213.0.2")
    assert first == chain_of(text, "out", "10.213.0.3")
    assert (
        first is not None
        and first[-1] == "drop"
        and set(first[:-1])
        == {
            f"{peer} {port} return"
            for peer in (
                "ip daddr { 10.213.0.4 }",
                "ip daddr { 10.213.0.5 }",
                "ip daddr != 10.0.0.0/8 ip daddr != 169.254.0.0/16",
                "ip daddr 10.9.0.0/16",
            )
            for port in ("tcp dport 80", "udp dport 32768-65535", "meta l4proto tcp")
        }
    )
    # The machine itself is only what is named.
    node = chain_of(text, "node", "10.213.0.2")
    assert node is not None and {
        line.rpartition(" return")[0].split(" tcp")[0] for line in node if "80" in line
    } == {"ip daddr 10.9.0.0/16"}


@given(st.lists(st.tuples(st.integers(2, 250), st.sampled_from("ab"), st.booleans()), max_size=12))
def test_every_chain_of_an_isolated_pod_ends_with_drop(drawn):
    shut = parse(item("shut", podSelector={"matchLabels": {"kind": "a"}}, policyTypes=["Ingress", "Egress"]))
    pods = [pod(f"10.213.0.{last}", "crews" if ours else "other", kind=kind) for last, kind, ours in drawn]
    text = rules(list({one.address: one for one in pods}.values()), shut)
    for one in {one.address: one for one in pods}.values():
        isolated = one.namespace == "crews" and one.labels["kind"] == "a"
        for direction in ("out", "node", "into"):
            assert chain_of(text, direction, one.address) == (["drop"] if isolated else None)


def test_addresses_survive_a_restart_and_are_released_with_their_sandbox(tmp_path: Path):
    first = Addresses(tmp_path)
    owner = AddressOwner("crews", "run-a", "uid-a", "sandbox-1")
    first.assign("10.213.0.2", owner)
    (tmp_path / "10.213.0.3").write_text("{")
    again = Addresses(tmp_path)
    assert again.owners() == {"10.213.0.2": owner} and not (tmp_path / "10.213.0.3").exists()
    # The next one of the same address is not forgotten with the last one's end.
    again.assign("10.213.0.2", AddressOwner("crews", "run-b", "uid-b", "sandbox-2"))
    assert not again.release("sandbox-1")
    assert again.release("sandbox-2") and Addresses(tmp_path).owners() == {}


def test_a_host_network_or_ended_pod_has_no_address():
    pod_object = {
        "metadata": {"namespace": "crews", "name": "a", "labels": {"a": "1"}},
        "spec": {},
        "status": {"phase": "Running", "podIP": "10.213.0.2"},
    }
    assert watched_pod(pod_object).address == "10.213.0.2"
    assert watched_pod({**pod_object, "spec": {"hostNetwork": True}}).address == ""
    assert watched_pod({**pod_object, "status": {"phase": "Failed", "podIP": "10.213.0.2"}}).address == ""
    assert watched_pod(json.loads(json.dumps(pod_object))).labels == {"a": "1"}
