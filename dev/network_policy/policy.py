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


class Inexpressible(Exception):
    """The policy says something that the node has no rules for; the text says what."""


@dataclass(frozen=True)
class Block:
    """Addresses by number, but for the excepted ones."""

    network: IPv4Network
    excepted: tuple[IPv4Network, ...] = ()


@dataclass(frozen=True)
class Selection:
    """Pods by labels. Without `namespaces` those of the policy's own namespace."""

    namespaces: Selector | None
    pods: Selector


@dataclass(frozen=True)
class Ports:
    """Ports of `tcp` or `udp`, both ends included."""

    protocol: str
    first: int
    last: int


@dataclass(frozen=True)
class Rule:
    """What is let through: to or from these peers (None: anybody), on these ports (None: all)."""

    peers: tuple[Block | Selection, ...] | None
    ports: tuple[Ports, ...] | None


@dataclass(frozen=True)
class Policy:
    """A direction that is None is left as it is; with no rule at all it is closed."""

    namespace: str
    name: str
    pods: Selector
    ingress: tuple[Rule, ...] | None
    egress: tuple[Rule, ...] | None

    @property
    def title(self) -> str:
        """Its name for people and for the ruleset."""
        return f"{self.namespace}/{self.name}"


def _types(spec: Mapping[str, Any]) -> list[str]:
    given = list(spec.get("policyTypes") or ())
    return given or ["Ingress", *(["Egress"] if spec.get("egress") else [])]


def parse(item: Mapping[str, Any]) -> Policy:
    """The policy of an object. Raises Inexpressible, which names the field."""
    spec, types = item["spec"], _types(item["spec"])
    return Policy(
        item["metadata"]["namespace"],
        item["metadata"]["name"],
        _selector(spec.get("podSelector") or {}),
        _rules(spec, "ingress", "from") if "Ingress" in types else None,
        _rules(spec, "egress", "to") if "Egress" in types else None,
    )


def closed(item: Mapping[str, Any]) -> Policy:
    """What holds in the place of an inexpressible policy: its pods, or all, with nothing let through."""
    types = _types(item["spec"])
    try:
        pods = _selector(item["spec"].get("podSelector") or {})
    except Inexpressible:
        pods = {}
    return Policy(
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
        for one in given.get("matchExpressions") or ():
            selector.matches({"matchExpressions": [one]}, {})
    except (ValueError, KeyError) as error:
        raise Inexpressible(f"a selector: {error}") from error
    return given


def _rules(spec: Mapping[str, Any], field: str, side: str) -> tuple[Rule, ...]:
    found = []
    for number, rule in enumerate(spec.get(field) or ()):
        place = f"spec.{field}[{number}]"
        peers, ports = rule.get(side) or None, rule.get("ports") or None
        found.append(
            Rule(
                None if peers is None else tuple(_peer(one, f"{place}.{side}") for one in peers),
                None if ports is None else tuple(_ports(one, f"{place}.ports") for one in ports),
            )
        )
    return tuple(found)


def _peer(given: Mapping[str, Any], place: str) -> Block | Selection:
    if block := given.get("ipBlock"):
        try:
            excepted = tuple(IPv4Network(one) for one in block.get("except") or ())
            return Block(IPv4Network(block["cidr"]), excepted)
        except ValueError as error:
            raise Inexpressible(f"{place}.ipBlock: {error}; the node knows IPv4 only") from error
    namespaces = given.get("namespaceSelector")
    pods = given.get("podSelector")
    return Selection(None if namespaces is None else _selector(namespaces), _selector(pods or {}))


def _ports(given: Mapping[str, Any], place: str) -> Ports:
    protocol, port = str(given.get("protocol") or "TCP"), given.get("port")
    if protocol not in ("TCP", "UDP"):
        raise Inexpressible(f"{place}: the protocol {protocol}")
    if port is None:
        return Ports(protocol.lower(), 0, 65535)
    if not isinstance(port, int):
        raise Inexpressible(f"{place}: a port by name, {port!r}; give its number")
    return Ports(protocol.lower(), port, int(given.get("endPort") or port))
