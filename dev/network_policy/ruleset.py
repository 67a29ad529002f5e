"""Pods and policies → the text that `nft` applies. Pure; called by the enforcer.

One table of our own beside those of kube-proxy and of `dev.net.firewall`: what is
dropped here no other table lets through, what passes here goes on to them.
Addresses of Services are translated before these rules see a packet.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass

from dev.network_policy import selector
from dev.network_policy.policy import Block, Policy, Ports, Rule, Selection
from dev.settings import BRIDGE

TABLE = "crewyard"

# IPv6 has no address of a pod but the one that each interface gives itself, and no policy speaks of it.
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
class Pod:
    """A pod that has an address."""

    namespace: str
    labels: Mapping[str, str]
    address: str


@dataclass(frozen=True)
class World:
    """All that the rules are made from. `namespaces` are their labels by name."""

    pods: Collection[Pod]
    namespaces: Mapping[str, Mapping[str, str]]
    policies: Collection[Policy]


Rules = Callable[[Policy], "tuple[Rule, ...] | None"]


def text(world: World) -> str:
    """The whole table, which takes the place of the last one in one step."""
    known = sorted({pod.address for pod in world.pods}, key=_number)
    out, out_chains = _direction(world, "out", "daddr", lambda policy: policy.egress)
    node, node_chains = _direction(world, "node", "daddr", lambda policy: policy.egress, node=True)
    into, into_chains = _direction(world, "into", "saddr", lambda policy: policy.ingress)
    lines = [
        f"table ip {TABLE} {{",
        "}",
        f"delete table ip {TABLE}",
        f"table ip {TABLE} {{",
        "  set known {",
        "    type ipv4_addr",
        *([f"    elements = {{ {', '.join(known)} }}"] if known else []),
        "  }",
        *out_chains,
        *node_chains,
        *into_chains,
        *out,
        *node,
        *into,
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


def selected(policies: Iterable[Policy], pod: Pod, rules: Rules) -> tuple[Policy, ...]:
    """The policies that isolate a pod in a direction; none leaves it open."""
    return tuple(
        one
        for one in policies
        if one.namespace == pod.namespace
        and rules(one) is not None
        and selector.matches(one.pods, pod.labels)
    )


def _direction(
    world: World, name: str, side: str, rules: Rules, node: bool = False
) -> tuple[list[str], list[str]]:
    """A map from addresses to chains, and the chains: one for all pods with the same policies."""
    policies = sorted(world.policies, key=lambda one: one.title)
    chains: dict[tuple[str, ...], tuple[str, list[str]]] = {}
    elements = []
    for pod in sorted(world.pods, key=lambda one: _number(one.address)):
        chosen = selected(policies, pod, rules)
        if not chosen:
            continue
        key = tuple(one.title for one in chosen)
        if key not in chains:
            body = [
                f"    {line}"
                for policy in chosen
                for rule in rules(policy) or ()
                for line in _lines(rule, policy, world, side, node)
            ]
            # A pod is let through to itself only where a policy says so, as everywhere.
            chain = f"{name}{len(chains)}"
            chains[key] = chain, [f"  chain {chain} {{", *dict.fromkeys(body), "    drop", "  }"]
        elements.append(f"{pod.address} : jump {chains[key][0]}")
    filled = [f"    elements = {{ {', '.join(elements)} }}"] if elements else []
    verdicts = [f"  map {name} {{", "    type ipv4_addr : verdict", *filled, "  }"]
    return verdicts, [line for _, body in chains.values() for line in body]


def _lines(rule: Rule, policy: Policy, world: World, side: str, node: bool) -> Iterable[str]:
    for peer in _peers(rule, policy, world, side, node):
        for port in [""] if rule.ports is None else [_port(one) for one in rule.ports]:
            yield " ".join(part for part in (peer, port, "return") if part)


def _peers(rule: Rule, policy: Policy, world: World, side: str, node: bool) -> Iterable[str]:
    if rule.peers is None:
        yield ""
        return
    for peer in rule.peers:
        if isinstance(peer, Block):
            # The whole world is what lies beyond this machine; what the machine itself has must be named.
            if not (node and peer.network.prefixlen == 0):
                wide = [] if peer.network.prefixlen == 0 else [f"ip {side} {peer.network}"]
                yield " ".join([*wide, *(f"ip {side} != {one}" for one in peer.excepted)])
        elif not node and (addresses := _addresses(peer, policy, world)):
            yield f"ip {side} {{ {', '.join(addresses)} }}"


def _addresses(peer: Selection, policy: Policy, world: World) -> list[str]:
    def inside(namespace: str) -> bool:
        if peer.namespaces is None:
            return namespace == policy.namespace
        return selector.matches(peer.namespaces, world.namespaces.get(namespace, {}))

    found = {
        pod.address for pod in world.pods if inside(pod.namespace) and selector.matches(peer.pods, pod.labels)
    }
    return sorted(found, key=_number)


def _port(ports: Ports) -> str:
    if (ports.first, ports.last) == (0, 65535):
        return f"meta l4proto {ports.protocol}"
    span = str(ports.first) if ports.first == ports.last else f"{ports.first}-{ports.last}"
    return f"{ports.protocol} dport {span}"


def _number(address: str) -> tuple[int, ...]:
    return tuple(int(part) for part in address.split("."))
