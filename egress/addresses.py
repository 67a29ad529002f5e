"""Policy for the network addresses that sources may be fetched from. Pure except for the injected resolver.

Called by egress.relay.relay for every connection of a fetch, which also covers redirects and names that
change their address, and by api.build_context.
"""

import ipaddress
import re
import socket
from collections.abc import Callable, Iterable
from dataclasses import dataclass

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Networks = tuple[ipaddress.IPv4Network | ipaddress.IPv6Network, ...]
Resolver = Callable[[str, int], list[str]]

_PRIVATE_NETWORKS = tuple(
    map(
        ipaddress.ip_network,
        ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "198.18.0.0/15", "fc00::/7"),
    )
)
_WITH_PORTS = re.compile(r"\[?([^\[\]]+?)\]?:([0-9]{1,5})(?:-([0-9]{1,5}))?", re.ASCII)
"""`address:port`, `network:first-last`; an IPv6 address or network has brackets."""
MAX_PORT = 65535
# Cloud metadata services outside the ranges that are always refused.
_METADATA_ADDRESSES = (
    "100.100.100.200/32",
    "168.63.129.16/32",
    "192.0.0.192/32",
    "fd00:ec2::254/128",
    "fd20:ce::254/128",
)


class AddressRefused(Exception):
    """This installation does not fetch from the address; the text has the address and the reason."""


@dataclass(frozen=True)
class AllowedDestination:
    """A network, and the ports there that may be connected to."""

    network: ipaddress.IPv4Network | ipaddress.IPv6Network
    first_port: int = 0
    last_port: int = MAX_PORT

    @staticmethod
    def parse(text: str) -> "AllowedDestination":
        """Parse `10.0.0.0/8`, `10.1.2.3:8418`, `[fd00::/8]:20000-65535`. Raises ValueError."""
        try:
            return AllowedDestination(ipaddress.ip_network(text, strict=False))
        except ValueError:
            match = _WITH_PORTS.fullmatch(text)
            if match is None:
                raise
        network = ipaddress.ip_network(match[1], strict=False)
        first, last = int(match[2]), int(match[3] or match[2])
        if (network.version == 6) != text.startswith("["):
            raise ValueError(f"{text!r}: put an IPv6 network into brackets, [fd00::/8]:443")
        if not 1 <= first <= last <= MAX_PORT:
            raise ValueError(f"{text!r}: ports are numbers from 1 to {MAX_PORT}, the lower one first")
        return AllowedDestination(network, first, last)

    def includes(self, address: Address, port: int) -> bool:
        """Return whether connections to this address and port are allowed by it."""
        return (
            address.version == self.network.version
            and address in self.network
            and self.first_port <= port <= self.last_port
        )


@dataclass(frozen=True)
class AddressRules:
    """`allow` overrides everything; `deny` adds to the addresses that are always refused."""

    allow: tuple[AllowedDestination, ...]
    deny: Networks

    @staticmethod
    def parse(allow: Iterable[str], deny: Iterable[str]) -> "AddressRules":
        """Parse destinations and networks. Raises ValueError naming a malformed one."""
        allowed = tuple(AllowedDestination.parse(text.strip()) for text in allow if text.strip())
        return AddressRules(allowed, _networks([*deny, *_METADATA_ADDRESSES]))

    def refusal_reason(self, address: Address, port: int) -> str | None:
        """Return why connections to `address` are refused, or None where they are allowed.

        An IPv4 address embedded in an IPv6 address is checked as well.
        """
        for candidate in (address, *_embedded(address)):
            if any(destination.includes(candidate, port) for destination in self.allow):
                continue
            if _within(candidate, self.deny):
                return "denied by this installation"
            kind = _forbidden_kind(candidate)
            if kind:
                return kind
        return None


def resolve_allowed(host: str, port: int, rules: AddressRules, resolve: Resolver) -> list[str]:
    """Resolve `host` and return its addresses, all of them allowed, in the resolver's order.

    One forbidden address refuses the whole name; otherwise chance would pick the address that gets the
    connection. Raises AddressRefused and the errors of `resolve`.
    """
    addresses = resolve(host, port)
    for text in addresses:
        reason = rules.refusal_reason(ipaddress.ip_address(text), port)
        if reason:
            detail = "" if text == host else f" is at {text}, which"
            raise AddressRefused(f"{host}{detail} is {reason}")
    return addresses


def system_resolver(host: str, port: int) -> list[str]:
    """Resolve `host`, in any spelling, with the system's resolver. Raises OSError."""
    entries = socket.getaddrinfo(host, port)
    return list(dict.fromkeys(str(entry[4][0]) for entry in entries))


def _networks(texts: Iterable[str]) -> Networks:
    return tuple(ipaddress.ip_network(text.strip(), strict=False) for text in texts if text.strip())


def _within(address: Address, networks: Networks) -> bool:
    return any(address in network for network in networks if network.version == address.version)


def _forbidden_kind(address: Address) -> str | None:
    if address.is_loopback:
        return "a loopback address"
    if address.is_link_local:
        return "a link-local address"
    if address.is_multicast:
        return "a multicast address"
    if address.is_unspecified or (address.version == 4 and int(address) >> 24 == 0):
        return "an unspecified address"
    if isinstance(address, ipaddress.IPv6Address) and address.is_site_local:
        return "a site-local address"
    if _within(address, _PRIVATE_NETWORKS):
        return "a private address"
    if address.is_reserved and not _embedded(address):
        return "a reserved address"
    return None


def _embedded(address: Address) -> tuple[Address, ...]:
    if isinstance(address, ipaddress.IPv4Address):
        return ()
    value = int(address)
    low = ipaddress.IPv4Address(value & 0xFFFFFFFF)
    if address.ipv4_mapped:
        return (address.ipv4_mapped,)
    if address.sixtofour:
        return (address.sixtofour,)
    if address.teredo:
        return address.teredo
    # NAT64, and the old "compatible" form.
    if value >> 32 in (0x0064FF9B << 64, 0) and not address.is_loopback:
        return (low,)
    return ()
