"""The heads of HTTP messages that pass egress.relay.http_relay, rewritten so that the way leads through it. Pure."""

from urllib.parse import SplitResult, urlsplit

_PORTS = {"http": 80, "https": 443}
_OF_ONE_CONNECTION = ("connection", "keep-alive")


def inside(url: str) -> str:
    """The path within the gate that stands for `url`."""
    parts = urlsplit(url)
    query = f"?{parts.query}" if parts.query else ""
    return f"/{parts.scheme}/{parts.netloc}{parts.path or '/'}{query}"


def target_of(head: bytes) -> tuple[str, str, int, bytes]:
    """Scheme, host and port that a request is meant for, and the head to send on. Raises ValueError."""
    lines = head.decode("latin-1").split("\r\n")
    method, target, version = lines[0].split(" ")
    empty, scheme, place, rest = target.split("/", 3)
    if empty or scheme not in _PORTS:
        raise ValueError(target)
    parts = urlsplit(f"//{place}")
    dropped = ("host:", "connection:", "keep-alive:")
    kept = [line for line in lines[1:] if not line.lower().startswith(dropped)]
    shown = place.removesuffix(f":{_PORTS[scheme]}")
    text = "\r\n".join([f"{method} /{rest} {version}", f"Host: {shown}", *kept, "Connection: close", "", ""])
    return scheme, _host(parts.hostname), parts.port or _PORTS[scheme], text.encode("latin-1")


def without_credentials(head: bytes) -> bytes:
    """A request's head without what was meant for another server."""
    lines = head.split(b"\r\n")
    return b"\r\n".join(line for line in lines if not line.lower().startswith(b"authorization:"))


def same_server(home: str, scheme: str, host: str, port: int) -> bool:
    """Whether a place is the server of the address `home`, or the https side of a plain http one."""
    parts = urlsplit(home)
    if parts.hostname != host:
        return False
    own = (parts.scheme, parts.port or _PORTS.get(parts.scheme))
    return (scheme, port) == own or (parts.scheme == "http" and (scheme, port) == ("https", 443))


def adapted(head: bytes, prefix: str) -> bytes:
    """The head of an answer as the near side may see it: the last one, redirects lead through `prefix`.

    A redirect that cannot be led through here is dropped: libgit2 understands more spellings of an address
    than there are rules for, and would follow one that it is given unchanged past the gate.
    """
    lines = []
    for line in head.decode("latin-1").split("\r\n"):
        name, _, value = line.partition(":")
        if name.strip().lower() == "location":
            led = _led_back(value.strip(), prefix)
            lines += [f"Location: {led}"] if led else []
        elif line[:1] not in (" ", "\t") and "\n" not in line and name.lower() not in _OF_ONE_CONNECTION:
            lines.append(line)
    return "\r\n".join([*lines, "Connection: close", "", ""]).encode("latin-1")


def answer(status: str) -> bytes:
    """An empty answer of the gate itself."""
    return f"HTTP/1.1 {status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".encode()


def _host(host: str | None) -> str:
    if not host:
        raise ValueError("no host")
    return host


def _led_back(location: str, prefix: str) -> str | None:
    if location.startswith("/") and not location.startswith("//"):
        return f"{prefix}{location}"
    parts = _parsed(location)
    return inside(location) if parts and parts.scheme in _PORTS and parts.netloc else None


def _parsed(address: str) -> SplitResult | None:
    try:
        return urlsplit(address)
    except ValueError:
        return None
