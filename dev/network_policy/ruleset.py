"""Pods and policies → the text for `nft`. Pure; called by the enforcer.

One separate table beside those of kube-proxy and of `dev.net.firewall`: a packet that it drops is dropped, a
packet that it accepts goes through the other tables. Service addresses are translated before these rules see
a packet.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass

from dev.network_policy import selector
from dev.network_policy.policy import AddressBlock, AllowRule, NetworkPolicy, PodSelection, PortRange
from dev.settings import BRIDGE

TABLE = "crewyard"

# Pods have only link-local IPv6 addresses, and policies do not cover them.
IPV6 = f"""table ip6 {TABLE} {{
}}
delete table ip6 {TABLE}
table ip6 {TABLE} {{
  chain forward {{
    type filter hook forward priority -10; policy accept;
    iifname "{BRIDGE}" drop
  }}
  chain input {{
    type filter hook input priority -10; policy accept;
    iifname "{BRIDGE}" drop
  }}
}}
"""


@dataclass(frozen=True)
class AddressedPod:
    """A pod that has an address."""

    namespace: str
    labels: Mapping[str, str]
    address: str


@dataclass(frozen=True)
class ClusterSnapshot:
    """Input of the rules. `namespaces` are their labels by name."""

    pods: Collection[AddressedPod]
    namespaces: Mapping[str, Mapping[str, str]]
    policies: Collection[NetworkPolicy]


Rules = Callable[[NetworkPolicy], "tuple[AllowRule, ...] | None"]


def text(snapshot: ClusterSnapshot) -> str:
    """Return the whole table, which atomically replaces the previous one."""
    addresses = sorted({pod.address for pod in snapshot.pods}, key=_number)
    egress_maps, egress_chains = _direction(snapshot, "out", "daddr", lambda policy: policy.egress)
    node_maps, node_chains = _direction(snapshot, "node", "daddr", lambda policy: policy.egress, node=True)
    ingress_maps, ingress_chains = _direction(snapshot, "into", "saddr", lambda policy: policy.ingress)
    lines = [
        f"table ip {TABLE} {{",
        "}",
        f"delete table ip {TABLE}",
        f"table ip {TABLE} {{",
        "  set known {",
        "    type ipv4_addr",
        *([f"    elements = {{ {', '.join(addresses)} }}"] if addresses else []),
        "  }",
        *egress_chains,
        *node_chains,
        *ingress_chains,
        *egress_maps,
        *node_maps,
        *ingress_maps,
        "  chain forward {",
        "    type filter hook forward priority -10; policy accept;",
        "    ct state established,related accept",
        f'    iifname "{BRIDGE}" ip saddr != @known drop',
        f'    iifname "{BRIDGE}" ip saddr vmap @out',
        f'    oifname "{BRIDGE}" ip daddr vmap @into',
        "  }",
        "  chain input {",
        "    type filter hook input priority -10; policy accept;",
        f'    iifname != "{BRIDGE}" accept',
        "    ct state established,related accept",
        "    ip saddr != @known drop",
        "    ip saddr vmap @node",
        "  }",
        "}",
    ]
    return "\n".join([*lines, ""])


def isolating_policies(
    policies: Iterable[NetworkPolicy], pod: AddressedPod, rules: Rules
) -> tuple[NetworkPolicy, ...]:
    """Return the policies that isolate a pod in a direction; without any it is open."""
    return tuple(
        policy
        for policy in policies
        if policy.namespace == pod.namespace
        and rules(policy) is not None
        and selector.matches(policy.pods, pod.labels)
    )


def _direction(
    snapshot: ClusterSnapshot, name: str, side: str, rules: Rules, node: bool = False
) -> tuple[list[str], list[str]]:
    """Return a map from addresses to chains, and the chains: one per set of policies."""
    policies = sorted(snapshot.policies, key=lambda item: item.title)
    chains: dict[tuple[str, ...], tuple[str, list[str]]] = {}
    elements = []
    for pod in sorted(snapshot.pods, key=lambda item: _number(item.address)):
        isolating = isolating_policies(policies, pod, rules)
        if not isolating:
            continue
        key = tuple(item.title for item in isolating)
        if key not in chains:
            body = [
                f"    {line}"
                for policy in isolating
                for rule in rules(policy) or ()
                for line in _lines(rule, policy, snapshot, side, node)
            ]
            # Traffic of a pod to itself needs a policy, as any other.
            chain = f"{name}{len(chains)}"
            chains[key] = chain, [f"  chain {chain} {{", *dict.fromkeys(body), "    drop", "  }"]
        elements.append(f"{pod.address} : jump {chains[key][0]}")
    elements_line = [f"    elements = {{ {', '.join(elements)} }}"] if elements else []
    verdicts = [f"  map {name} {{", "    type ipv4_addr : verdict", *elements_line, "  }"]
    return verdicts, [line for _, body in chains.values() for line in body]


def _lines(
    rule: AllowRule, policy: NetworkPolicy, snapshot: ClusterSnapshot, side: str, node: bool
) -> Iterable[str]:
    for peer in _peers(rule, policy, snapshot, side, node):
        for port in [""] if rule.ports is None else [_port(port_range) for port_range in rule.ports]:
            yield " ".join(part for part in (peer, port, "return") if part)


def _peers(
    rule: AllowRule, policy: NetworkPolicy, snapshot: ClusterSnapshot, side: str, node: bool
) -> Iterable[str]:
    if rule.peers is None:
        yield ""
        return
    for peer in rule.peers:
        if isinstance(peer, AddressBlock):
            # 0.0.0.0/0 excludes this machine; a policy must name the machine's own addresses.
            if not (node and peer.network.prefixlen == 0):
                cidr_match = [] if peer.network.prefixlen == 0 else [f"ip {side} {peer.network}"]
                yield " ".join([*cidr_match, *(f"ip {side} != {excepted}" for excepted in peer.excepted)])
        elif not node and (addresses := _addresses(peer, policy, snapshot)):
            yield f"ip {side} {{ {', '.join(addresses)} }}"


def _addresses(peer: PodSelection, policy: NetworkPolicy, snapshot: ClusterSnapshot) -> list[str]:
    def inside(namespace: str) -> bool:
        if peer.namespaces is None:
            return namespace == policy.namespace
        return selector.matches(peer.namespaces, snapshot.namespaces.get(namespace, {}))

    addresses = {
        pod.address
        for pod in snapshot.pods
        if inside(pod.namespace) and selector.matches(peer.pods, pod.labels)
    }
    return sorted(addresses, key=_number)


def _port(ports: PortRange) -> str:
    if (ports.first, ports.last) == (0, 65535):
        return f"meta l4proto {ports.protocol}"
    span = str(ports.first) if ports.first == ports.last else f"{ports.first}-{ports.last}"
    return f"{ports.protocol} dport {span}"


def _number(address: str) -> tuple[int, ...]:
    return tuple(int(part) for part in address.split("."))
