"""A NetworkPolicy as a value. Pure; called by the enforcer for every policy it sees.

What the rules of the node cannot express is an error, never left out: such a
policy closes what it selects.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import IPv4Network
from typing import Any

from dev.network_policy import selector

Selector = Mapping[str, Any]


class UnsupportedPolicy(Exception):
    """The policy says something that the node has no rules for; the text says what."""


@dataclass(frozen=True)
class AddressBlock:
    """Addresses by number, but for the excepted ones."""

    network: IPv4Network
    excepted: tuple[IPv4Network, ...] = ()


@dataclass(frozen=True)
class PodSelection:
    """Pods by labels. Without `namespaces` those of the policy's own namespace."""

    namespaces: Selector | None
    pods: Selector


@dataclass(frozen=True)
class PortRange:
    """Ports of `tcp` or `udp`, both ends included."""

    protocol: str
    first: int
    last: int


@dataclass(frozen=True)
class AllowRule:
    """What is let through: to or from these peers (None: anybody), on these ports (None: all)."""

    peers: tuple[AddressBlock | PodSelection, ...] | None
    ports: tuple[PortRange, ...] | None


@dataclass(frozen=True)
class NetworkPolicy:
    """A direction that is None is left as it is; with no rule at all it is closed."""

    namespace: str
    name: str
    pods: Selector
    ingress: tuple[AllowRule, ...] | None
    egress: tuple[AllowRule, ...] | None

    @property
    def title(self) -> str:
        """Its name for people and for the ruleset."""
        return f"{self.namespace}/{self.name}"


def _types(spec: Mapping[str, Any]) -> list[str]:
    types = list(spec.get("policyTypes") or ())
    return types or ["Ingress", *(["Egress"] if spec.get("egress") else [])]


def parse(item: Mapping[str, Any]) -> NetworkPolicy:
    """The policy of an object. Raises Inexpressible, which names the field."""
    spec, types = item["spec"], _types(item["spec"])
    return NetworkPolicy(
        item["metadata"]["namespace"],
        item["metadata"]["name"],
        _selector(spec.get("podSelector") or {}),
        _rules(spec, "ingress", "from") if "Ingress" in types else None,
        _rules(spec, "egress", "to") if "Egress" in types else None,
    )


def deny_all(item: Mapping[str, Any]) -> NetworkPolicy:
    """What holds in the place of an inexpressible policy: its pods, or all, with nothing let through."""
    types = _types(item["spec"])
    try:
        pods = _selector(item["spec"].get("podSelector") or {})
    except UnsupportedPolicy:
        pods = {}
    return NetworkPolicy(
        item["metadata"]["namespace"],
        item["metadata"]["name"],
        pods,
        () if "Ingress" in types else None,
        () if "Egress" in types else None,
    )


def _selector(given: Selector) -> Selector:
    try:
        selector.matches(given, {})
        # An expression behind one that fails is not looked at above.
        for expression in given.get("matchExpressions") or ():
            selector.matches({"matchExpressions": [expression]}, {})
    except (ValueError, KeyError) as error:
        raise UnsupportedPolicy(f"a selector: {error}") from error
    return given


def _rules(spec: Mapping[str, Any], field: str, side: str) -> tuple[AllowRule, ...]:
    rules = []
    for number, rule in enumerate(spec.get(field) or ()):
        path = f"spec.{field}[{number}]"
        peers, ports = rule.get(side) or None, rule.get("ports") or None
        rules.append(
            AllowRule(
                None if peers is None else tuple(_peer(item, f"{path}.{side}") for item in peers),
                None if ports is None else tuple(_ports(item, f"{path}.ports") for item in ports),
            )
        )
    return tuple(rules)


def _peer(peer: Mapping[str, Any], path: str) -> AddressBlock | PodSelection:
    if block := peer.get("ipBlock"):
        try:
            excepted = tuple(IPv4Network(cidr) for cidr in block.get("except") or ())
            return AddressBlock(IPv4Network(block["cidr"]), excepted)
        except ValueError as error:
            raise UnsupportedPolicy(f"{path}.ipBlock: {error}; the node knows IPv4 only") from error
    namespaces = peer.get("namespaceSelector")
    pods = peer.get("podSelector")
    return PodSelection(None if namespaces is None else _selector(namespaces), _selector(pods or {}))


def _ports(item: Mapping[str, Any], path: str) -> PortRange:
    protocol, port = str(item.get("protocol") or "TCP"), item.get("port")
    if protocol not in ("TCP", "UDP"):
        raise UnsupportedPolicy(f"{path}: the protocol {protocol}")
    if port is None:
        return PortRange(protocol.lower(), 0, 65535)
    if not isinstance(port, int):
        raise UnsupportedPolicy(f"{path}: a port by name, {port!r}; give its number")
    return PortRange(protocol.lower(), port, int(item.get("endPort") or port))
