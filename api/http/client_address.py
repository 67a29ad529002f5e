"""Address of the client behind trusted proxies (CREWYARD_TRUSTED_PROXIES). Pure.

Called by `api.routing.middleware` for rate limits by address and for the log.
"""

import ipaddress
from collections.abc import Iterable, Sequence

Networks = tuple[ipaddress.IPv4Network | ipaddress.IPv6Network, ...]
Address = ipaddress.IPv4Address | ipaddress.IPv6Address
MAX_HOPS = 16
"""Most entries of X-Forwarded-For that are read, from the right."""


def parse_proxies(text: str) -> Networks:
    """Parse comma-separated networks. Raises ValueError with the correct form."""
    try:
        return tuple(ipaddress.ip_network(part.strip()) for part in text.split(",") if part.strip())
    except ValueError as error:
        raise ValueError(f"{error}; write networks, for example 10.1.2.0/24,fd00::7") from error


def client_address(remote: str | None, forwarded_for: Iterable[str], trusted: Networks) -> str:
    """Return the address of the last hop that is no trusted proxy; `remote` if it is none itself.

    `forwarded_for` are the values of X-Forwarded-For; each proxy appends the address that connected to it, so
    only the entries to the right of the last one by a trusted proxy are true.
    """
    current = remote or ""
    hops: Sequence[str] = [hop.strip() for value in forwarded_for for hop in value.split(",")]
    for hop in reversed(hops[-MAX_HOPS:]):
        if not _is_within(current, trusted):
            return current
        address = _address(hop)
        if address is None:
            return current
        current = str(address)
    return current


def _is_within(text: str, networks: Networks) -> bool:
    address = _address(text)
    return address is not None and any(
        address in network for network in networks if network.version == address.version
    )


def _address(text: str) -> Address | None:
    """Parse an address, also with a port: `192.0.2.1:443`, `[2001:db8::1]:443`."""
    host = text.partition("%")[0]
    if host.startswith("["):
        host = host[1:].partition("]")[0]
    elif host.count(":") == 1:
        host = host.partition(":")[0]
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return mapped or address
