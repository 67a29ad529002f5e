"""Where a foreign build context may lie: its address read strictly, against the hosts that are allowed. Pure.

Called by `api.config` for the list and by `api.build_context.fetch` for an address and each of its redirects.
What two parsers could read differently is refused: whoever checks and whoever connects must mean one host.
"""

import ipaddress
import re
from dataclasses import dataclass
from urllib.parse import urljoin

PORTS = {"http": 80, "https": 443}
LONGEST = 4096
_ADDRESS = re.compile(r"(?P<scheme>[A-Za-z]+)://(?P<place>[^/?]*)(?P<rest>(?:[/?].*)?)", re.ASCII)
_PLACE = re.compile(r"(?P<host>\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9.-]+)(?::(?P<port>[1-9][0-9]{0,4}))?", re.ASCII)
_NAME = re.compile(
    r"(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)*[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?", re.ASCII
)
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*", re.ASCII)


class Refused(Exception):
    """Not an address that is fetched from; the text goes on from "build_context_url"."""


@dataclass(frozen=True)
class Host:
    """An allowed host; `port` None stands for the ports that http and https have by themselves."""

    name: str
    port: int | None


Hosts = frozenset[Host]


@dataclass(frozen=True)
class Place:
    """An address that was read: `host` is a lower-case name or an IP address as it is written canonically."""

    scheme: str
    host: str
    port: int
    rest: str

    @property
    def url(self) -> str:
        """The address, in the one spelling that is used from here on."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        port = "" if self.port == PORTS[self.scheme] else f":{self.port}"
        return f"{self.scheme}://{host}{port}{self.rest}"

    def within(self, hosts: Hosts) -> bool:
        """Whether the list names it."""
        own = self.port == PORTS[self.scheme]
        return Host(self.host, self.port) in hosts or (own and Host(self.host, None) in hosts)


def parse_hosts(text: str) -> Hosts:
    """The hosts of a comma-separated list, `name` or `name:port`. Raises ValueError naming a wrong one."""
    found = set()
    for part in (part.strip() for part in text.split(",")):
        if not part:
            continue
        split = _PLACE.fullmatch(part)
        host = _host(split["host"]) if split else None
        if split is None or host is None or int(split["port"] or 1) > 65535:
            raise ValueError(f"{part!r} is no host; write for example github.com,files.example.com:8443")
        found.add(Host(host, int(split["port"]) if split["port"] else None))
    return frozenset(found)


def read(address: str, hosts: Hosts) -> Place:
    """The place that an address names. Raises Refused where it is malformed, or its host is not allowed."""
    split = _ADDRESS.fullmatch(address) if _plain(address) else None
    if split is None:
        raise Refused("must be an http:// or https:// address of plain characters, without #, \\ and spaces")
    scheme = split["scheme"].lower()
    if scheme not in PORTS:
        raise Refused("must begin with https:// or http://")
    if "@" in split["place"]:
        raise Refused("must not carry a user or a password; nothing secret is sent to other servers")
    place = _PLACE.fullmatch(split["place"])
    host = _host(place["host"]) if place else None
    port = int(place["port"] or PORTS[scheme]) if place else 0
    if host is None or not 0 < port < 65536:
        raise Refused("must name a host as the domain name system does, in lower-case ASCII (IDN as xn--…)")
    rest = split["rest"] if split["rest"].startswith("/") else "/" + split["rest"]
    found = Place(scheme, host, port, rest)
    if not found.within(hosts):
        raise Refused(f"names the host {host}:{port}, which this installation does not fetch from")
    return found


def redirected(place: Place, location: str, hosts: Hosts) -> Place:
    """Where a redirect leads. Raises Refused also where it leads from https to http."""
    if not _plain(location):
        raise Refused("is redirected to an address that is malformed")
    try:
        joined = urljoin(place.url, location)
    except ValueError as error:
        raise Refused("is redirected to an address that is malformed") from error
    found = read(joined, hosts)
    if place.scheme == "https" and found.scheme != "https":
        raise Refused("is redirected from https to http")
    return found


def _plain(text: str) -> bool:
    return 0 < len(text) <= LONGEST and all("!" <= sign <= "~" and sign not in "\\#" for sign in text)


def _host(text: str) -> str | None:
    """The host in its canonical spelling; None for what is none, and for IP addresses spelled otherwise."""
    lower = text.lower()
    try:
        if lower.startswith("["):
            return lower[1:-1] if str(ipaddress.IPv6Address(lower[1:-1])) == lower[1:-1] else None
        if _NUMBER.fullmatch(lower.rpartition(".")[2]):
            # What ends in a number is an IPv4 address to those who connect, in any of its spellings.
            return str(ipaddress.IPv4Address(lower))
    except ValueError:
        return None
    return lower if _NAME.fullmatch(lower) and len(lower) <= 253 else None
