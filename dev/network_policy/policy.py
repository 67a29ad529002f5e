"""A NetworkPolicy as a value. Pure; called by the watcher with each policy.

What the node's rules cannot express raises an error and is never ignored: such a policy blocks the pods that
it selects.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import IPv4Network
from typing import Any

from dev.network_policy import selector

Selector = Mapping[str, Any]


class UnsupportedPolicy(Exception):
    """The node has no rules for a part of the policy; the text names that part."""


@dataclass(frozen=True)
class AddressBlock:
    """A network of addresses, without the excepted ones."""

    network: IPv4Network
    excepted: tuple[IPv4Network, ...] = ()


@dataclass(frozen=True)
class PodSelection:
    """Pods by labels; without `namespaces` those of the policy's own namespace."""

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
    """What is allowed: to or from these peers (None: any), on these ports (None: all)."""

    peers: tuple[AddressBlock | PodSelection, ...] | None
    ports: tuple[PortRange, ...] | None


@dataclass(frozen=True)
class NetworkPolicy:
    """A direction of None is not isolated; an empty tuple blocks it."""

    namespace: str
    name: str
    pods: Selector
    ingress: tuple[AllowRule, ...] | None
    egress: tuple[AllowRule, ...] | None

    @property
    def title(self) -> str:
        """The name for people and for the ruleset."""
        return f"{self.namespace}/{self.name}"


def _types(spec: Mapping[str, Any]) -> list[str]:
    types = list(spec.get("policyTypes") or ())
    return types or ["Ingress", *(["Egress"] if spec.get("egress") else [])]


def parse(item: Mapping[str, Any]) -> NetworkPolicy:
    """Return the policy of an object. Raises UnsupportedPolicy that names the field."""
    spec, types = item["spec"], _types(item["spec"])
    return NetworkPolicy(
        item["metadata"]["namespace"],
        item["metadata"]["name"],
        _selector(spec.get("podSelector") or {}),
        _rules(spec, "ingress", "from") if "Ingress" in types else None,
        _rules(spec, "egress", "to") if "Egress" in types else None,
    )


def deny_all(item: Mapping[str, Any]) -> NetworkPolicy:
    """Return the substitute for an unsupported policy: its pods, or all, with nothing allowed."""
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


def _selector(value: Selector) -> Selector:
    try:
        selector.matches(value, {})
        # The call above stops at the first expression that does not match.
        for expression in value.get("matchExpressions") or ():
            selector.matches({"matchExpressions": [expression]}, {})
    except (ValueError, KeyError) as error:
        raise UnsupportedPolicy(f"a selector: {error}") from error
    return value


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
            raise UnsupportedPolicy(f"{path}.ipBlock: {error}; the node supports only IPv4") from error
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
        raise UnsupportedPolicy(f"{path}: the named port {port!r}; use its number")
    return PortRange(protocol.lower(), port, int(item.get("endPort") or port))
