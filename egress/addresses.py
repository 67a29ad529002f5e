"""Which network addresses a source may be fetched from. Pure but for the resolver that is handed in.

Called by egress.relay.http_relay for every connection that fetching makes, so that redirects
and names that change their address are covered as well.
"""

import ipaddress
import socket
from collections.abc import Callable, Iterable
from dataclasses import dataclass

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Networks = tuple[ipaddress.IPv4Network | ipaddress.IPv6Network, ...]
Resolver = Callable[[str, int], list[str]]

# Metadata services that lie outside the ranges which are refused anyway.
_METADATA = (
    "100.100.100.200/32",
    "168.63.129.16/32",
    "192.0.0.192/32",
    "fd00:ec2::254/128",
    "fd20:ce::254/128",
)


class AddressRefused(Exception):
    """The address is one this installation does not fetch from; the text says which and why."""


@dataclass(frozen=True)
class Rules:
    """`allow` wins over everything; `deny` adds to what is always refused."""

    allow: Networks
    deny: Networks

    @staticmethod
    def parse(allow: Iterable[str], deny: Iterable[str]) -> "Rules":
        """From networks in CIDR form. Raises ValueError naming a malformed one."""
        return Rules(_networks(allow), _networks([*deny, *_METADATA]))

    def objection(self, address: Address) -> str | None:
        """Why `address` is refused, or None where it may be connected to.

        An IPv4 address carried inside an IPv6 one is judged as what it is.
        """
        for candidate in (address, *_carried(address)):
            if _within(candidate, self.allow):
                continue
            if _within(candidate, self.deny):
                return "denied by this installation"
            kind = _kind(candidate)
            if kind:
                return kind
        return None


def checked(host: str, port: int, rules: Rules, resolve: Resolver) -> list[str]:
    """The addresses of `host`, all of them allowed, in the resolver's order.

    One forbidden address among them refuses the name: which one gets the
    connection would else be chance. Raises AddressRefused; what `resolve` raises passes.
    """
    found = resolve(host, port)
    for text in found:
        why = rules.objection(ipaddress.ip_address(text.partition("%")[0]))
        if why:
            at = "" if text == host else f" is at {text}, which"
            raise AddressRefused(f"{host}{at} is {why}")
    return found


def system_resolver(host: str, port: int) -> list[str]:
    """What the system makes of `host`, in every spelling it understands. Raises OSError."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


def _networks(texts: Iterable[str]) -> Networks:
    return tuple(ipaddress.ip_network(text.strip(), strict=False) for text in texts if text.strip())


def _within(address: Address, networks: Networks) -> bool:
    return any(address in network for network in networks if network.version == address.version)


def _kind(address: Address) -> str | None:
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
    if address.is_reserved and not _carried(address):
        return "a reserved address"
    return None


def _carried(address: Address) -> tuple[Address, ...]:
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
    if value >> 32 in (0x0064FF9B << 64, 0) and value > 0xFFFF:  # NAT64, and the old "compatible" form
        return (low,)
    return ()
