"""Rewriting of HTTP heads that keeps requests and redirects on the relay. Pure. Called by http_relay."""

from urllib.parse import SplitResult, urlsplit

_PORTS = {"http": 80, "https": 443}
_HOP_BY_HOP_HEADERS = ("connection", "keep-alive")


def relay_path(url: str) -> str:
    """Return the relay's path for `url`."""
    parts = urlsplit(url)
    query = f"?{parts.query}" if parts.query else ""
    return f"/{parts.scheme}/{parts.netloc}{parts.path or '/'}{query}"


def parse_request_head(head: bytes) -> tuple[str, str, int, bytes]:
    """Return scheme, host and port of the upstream server, and the head to forward. Raises ValueError."""
    lines = head.decode("latin-1").split("\r\n")
    method, target, version = lines[0].split(" ")
    empty, scheme, netloc, path = target.split("/", 3)
    if empty or scheme not in _PORTS:
        raise ValueError(target)
    parts = urlsplit(f"//{netloc}")
    dropped_headers = ("host:", "connection:", "keep-alive:")
    headers = [line for line in lines[1:] if not line.lower().startswith(dropped_headers)]
    host_header = netloc.removesuffix(f":{_PORTS[scheme]}")
    text = "\r\n".join(
        [f"{method} /{path} {version}", f"Host: {host_header}", *headers, "Connection: close", "", ""]
    )
    return scheme, _host(parts.hostname), parts.port or _PORTS[scheme], text.encode("latin-1")


def without_credentials(head: bytes) -> bytes:
    """Return the request head without its Authorization header, which is for another server."""
    lines = head.split(b"\r\n")
    return b"\r\n".join(line for line in lines if not line.lower().startswith(b"authorization:"))


def same_server(repository_url: str, scheme: str, host: str, port: int) -> bool:
    """Return whether scheme, host and port are those of `repository_url`, or its https upgrade."""
    parts = urlsplit(repository_url)
    if parts.hostname != host:
        return False
    home = (parts.scheme, parts.port or _PORTS.get(parts.scheme))
    return (scheme, port) == home or (parts.scheme == "http" and (scheme, port) == ("https", 443))


def rewrite_response_head(head: bytes, prefix: str) -> bytes:
    """Return the response head for libgit2: `Connection: close`, and redirects rewritten with `prefix`.

    Drop a redirect that cannot be rewritten: libgit2 accepts more URL spellings than this module parses and
    would follow an unchanged one past the relay.
    """
    lines = []
    for line in head.decode("latin-1").split("\r\n"):
        name, _, value = line.partition(":")
        if name.strip().lower() == "location":
            location = _rewrite_location(value.strip(), prefix)
            lines += [f"Location: {location}"] if location else []
        elif line[:1] not in (" ", "\t") and "\n" not in line and name.lower() not in _HOP_BY_HOP_HEADERS:
            lines.append(line)
    return "\r\n".join([*lines, "Connection: close", "", ""]).encode("latin-1")


def empty_response(status: str) -> bytes:
    """Return an empty response of the relay itself."""
    return f"HTTP/1.1 {status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".encode()


def _host(host: str | None) -> str:
    if not host:
        raise ValueError("no host")
    return host


def _rewrite_location(location: str, prefix: str) -> str | None:
    if location.startswith("/") and not location.startswith("//"):
        return f"{prefix}{location}"
    parts = _parsed(location)
    return relay_path(location) if parts and parts.scheme in _PORTS and parts.netloc else None


def _parsed(address: str) -> SplitResult | None:
    try:
        return urlsplit(address)
    except ValueError:
        return None
