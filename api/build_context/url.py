"""Strict parsing of build context URLs against the list of allowed hosts. Pure.

Called by `api.config` for the list and by `api.build_context.fetch` for a URL and each of its redirects.
Rejects URLs that two parsers could read differently: the checked host must be the connected host.
"""

import ipaddress
import re
from dataclasses import dataclass
from urllib.parse import urljoin

DEFAULT_PORTS = {"http": 80, "https": 443}
MAX_URL_LENGTH = 4096
_URL = re.compile(r"(?P<scheme>[A-Za-z]+)://(?P<authority>[^/?]*)(?P<target>(?:[/?].*)?)", re.ASCII)
_AUTHORITY = re.compile(
    r"(?P<host>\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9.-]+)(?::(?P<port>[1-9][0-9]{0,4}))?", re.ASCII
)
_HOST_NAME = re.compile(
    r"(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)*[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?", re.ASCII
)
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*", re.ASCII)


class ContextUrlRefused(Exception):
    """A rejected URL; the message continues the text "build_context_url"."""


@dataclass(frozen=True)
class AllowedHost:
    """An allowed host; `port` None: the default ports of http and https."""

    name: str
    port: int | None


AllowedHosts = frozenset[AllowedHost]


@dataclass(frozen=True)
class ContextUrl:
    """A parsed URL; `host` is a lower-case name or an IP address in canonical form."""

    scheme: str
    host: str
    port: int
    target: str

    @property
    def url(self) -> str:
        """The URL in canonical form."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        port = "" if self.port == DEFAULT_PORTS[self.scheme] else f":{self.port}"
        return f"{self.scheme}://{host}{port}{self.target}"

    def is_allowed(self, hosts: AllowedHosts) -> bool:
        """Return whether its host is in the list."""
        is_default_port = self.port == DEFAULT_PORTS[self.scheme]
        return AllowedHost(self.host, self.port) in hosts or (
            is_default_port and AllowedHost(self.host, None) in hosts
        )


def parse_hosts(text: str) -> AllowedHosts:
    """Parse a comma-separated list of `name` or `name:port`. Raises ValueError that names an invalid one."""
    hosts = set()
    for part in (part.strip() for part in text.split(",")):
        if not part:
            continue
        match = _AUTHORITY.fullmatch(part)
        host = _host(match["host"]) if match else None
        if match is None or host is None or int(match["port"] or 1) > 65535:
            raise ValueError(f"{part!r} is not a host; write for example github.com,files.example.com:8443")
        hosts.add(AllowedHost(host, int(match["port"]) if match["port"] else None))
    return frozenset(hosts)


def parse_url(text: str, hosts: AllowedHosts | None) -> ContextUrl:
    """Parse a URL. Raises ContextUrlRefused if it is malformed or its host is not in `hosts` (None: all)."""
    match = _URL.fullmatch(text) if _is_plain(text) else None
    if match is None:
        raise ContextUrlRefused(
            "must be an http:// or https:// URL of printable ASCII, without #, \\ and spaces"
        )
    scheme = match["scheme"].lower()
    if scheme not in DEFAULT_PORTS:
        raise ContextUrlRefused("must begin with https:// or http://")
    if "@" in match["authority"]:
        raise ContextUrlRefused(
            "must not contain a user or a password; credentials are not sent to other servers"
        )
    authority = _AUTHORITY.fullmatch(match["authority"])
    host = _host(authority["host"]) if authority else None
    port = int(authority["port"] or DEFAULT_PORTS[scheme]) if authority else 0
    if host is None or not 0 < port < 65536:
        raise ContextUrlRefused("must have a valid DNS host name in ASCII (IDN as xn--…) or an IP address")
    target = match["target"] if match["target"].startswith("/") else "/" + match["target"]
    url = ContextUrl(scheme, host, port, target)
    if hosts is not None and not url.is_allowed(hosts):
        raise ContextUrlRefused(f"names the host {host}:{port}, which is not in CREWYARD_CONTEXT_HOSTS")
    return url


def resolve_redirect(url: ContextUrl, location: str, hosts: AllowedHosts) -> ContextUrl:
    """Return the target of a redirect. Raises ContextUrlRefused, also for a redirect from https to http."""
    if not _is_plain(location):
        raise ContextUrlRefused("redirects to a malformed URL")
    try:
        joined = urljoin(url.url, location)
    except ValueError as error:
        raise ContextUrlRefused("redirects to a malformed URL") from error
    target = parse_url(joined, hosts)
    if url.scheme == "https" and target.scheme != "https":
        raise ContextUrlRefused("redirects from https to http")
    return target


def _is_plain(text: str) -> bool:
    return 0 < len(text) <= MAX_URL_LENGTH and all(
        "!" <= character <= "~" and character not in "\\#" for character in text
    )


def _host(text: str) -> str | None:
    """Return the canonical host; None for an invalid host or an IP address not in canonical form."""
    lower = text.lower()
    try:
        if lower.startswith("["):
            return lower[1:-1] if str(ipaddress.IPv6Address(lower[1:-1])) == lower[1:-1] else None
        if _NUMBER.fullmatch(lower.rpartition(".")[2]):
            # Resolvers treat a host that ends in a number as an IPv4 address, in any of its spellings.
            return str(ipaddress.IPv4Address(lower))
    except ValueError:
        return None
    return lower if _HOST_NAME.fullmatch(lower) and len(lower) <= 253 else None
