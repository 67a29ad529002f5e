"""The only way out while a source is fetched: a small relay on loopback that checks every connection.

libgit2 resolves names and follows redirects by itself; here each of its
connections goes to an address that was checked in the same moment. Called by
build.fetch_git. It is no proxy, since libgit2 ignores one for plain http and
hangs on an untrusted certificate behind one: `/https/host:port/path` stands for
the far address, redirects are rewritten likewise, and TLS is spoken from here,
with the certificate checked against the far host.
"""

import contextlib
import select
import socket
import socketserver
import ssl
import threading
from typing import Any, cast
from urllib.parse import urlsplit

from build.addresses import AddressRefused, Resolver, Rules, checked, system_resolver

_HEAD_BYTES = 64 << 10
_CHUNK = 64 << 10
_PORTS = {"http": 80, "https": 443}


class Gate:
    """A context manager; `refusals` is what it turned away, `untrusted` hosts whose certificate is not valid.

    `ca` are certificates in PEM form that are trusted besides the system's.
    `unknown` are hosts that have no address at all. At most `most` bytes come in
    through all connections together, then `exceeded` is set and all of them end.
    Connecting and idling are bounded by `connect_timeout` and `idle_timeout`, in seconds.
    """

    def __init__(
        self,
        rules: Rules,
        resolve: Resolver = system_resolver,
        connect_timeout: float = 10.0,
        idle_timeout: float = 60.0,
        most: int = 1 << 30,
        ca: str = "",
    ) -> None:
        self.rules, self.resolve = rules, resolve
        self.exceeded = False
        self._left, self._lock = most, threading.Lock()
        self.connect_timeout, self.idle_timeout = connect_timeout, idle_timeout
        self.refusals: list[str] = []
        self.unknown: list[str] = []
        self.untrusted: list[str] = []
        self._ca = ca
        self._context: ssl.SSLContext | None = None
        self._server = _Server(("127.0.0.1", 0), _Connection)
        self._server.gate = self
        self._here = f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> "Gate":
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True, name="gate").start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def address(self, url: str) -> str:
        """What to ask for in place of `url`, so that the way leads through here."""
        return f"{self._here}{_inside(url)}"

    def take(self, count: int) -> bool:
        """Counts bytes that came in; False once they are too many."""
        with self._lock:
            self._left -= count
            self.exceeded = self._left < 0
            return not self.exceeded

    def secured(self, plain: socket.socket, host: str) -> socket.socket:
        """TLS over `plain`, with the certificate of `host`. Raises OSError."""
        try:
            with self._lock:
                self._context = self._context or _trusting(self._ca)
            return self._context.wrap_socket(plain, server_hostname=host)
        except ssl.SSLCertVerificationError as error:
            self.untrusted.append(f"{host}: {error.verify_message}")
            raise

    def connect(self, host: str, port: int) -> socket.socket:
        """A connection to a checked address of `host`. Raises AddressRefused or OSError."""
        try:
            addresses = checked(host, port, self.rules, self.resolve)
        except AddressRefused as error:
            self.refusals.append(str(error))
            raise
        except socket.gaierror as error:
            if error.errno in (socket.EAI_NONAME, getattr(socket, "EAI_NODATA", socket.EAI_NONAME)):
                self.unknown.append(host)
            raise
        last: OSError = OSError(f"{host} has no address")
        for address in addresses[:8]:
            try:
                return socket.create_connection((address, port), timeout=self.connect_timeout)
            except OSError as error:
                last = error
        raise last


class _Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
    allow_reuse_address = True
    request_queue_size = 16
    gate: Gate


class _Connection(socketserver.BaseRequestHandler):
    """One request of libgit2: the connection ends with its answer."""

    def handle(self) -> None:
        client = cast(socket.socket, self.request)
        gate = cast(_Server, self.server).gate
        client.settimeout(gate.idle_timeout)
        with contextlib.suppress(OSError):
            head, rest = _read_head(client)
            if head:
                self._serve(client, gate, head, rest)

    def _serve(self, client: socket.socket, gate: Gate, head: bytes, rest: bytes) -> None:
        try:
            scheme, host, port, forwarded = _target(head)
        except ValueError:
            client.sendall(_answer("400 Bad Request"))
            return
        try:
            upstream = gate.connect(host, port)
            upstream.settimeout(gate.idle_timeout)
            if scheme == "https":
                upstream = gate.secured(upstream, host)
        except AddressRefused:
            client.sendall(_answer("403 Forbidden"))
            return
        except OSError:
            client.sendall(_answer("502 Bad Gateway"))
            return
        with upstream:
            upstream.sendall(forwarded + rest)
            far = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
            _pipe(client, upstream, gate, f"/{scheme}/{far}")


def _read_head(stream: socket.socket) -> tuple[bytes, bytes]:
    data = b""
    while b"\r\n\r\n" not in data:
        more = stream.recv(_CHUNK)
        if not more or len(data) > _HEAD_BYTES:
            return b"", b""
        data += more
    head, _, rest = data.partition(b"\r\n\r\n")
    return head, rest


def _target(head: bytes) -> tuple[str, str, int, bytes]:
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


def _inside(url: str) -> str:
    parts = urlsplit(url)
    query = f"?{parts.query}" if parts.query else ""
    return f"/{parts.scheme}/{parts.netloc}{parts.path or '/'}{query}"


def _trusting(ca: str) -> ssl.SSLContext:
    context = ssl.create_default_context()
    if ca:
        context.load_verify_locations(cadata=ca)
    return context


def _waiting(*sides: socket.socket, seconds: float) -> list[socket.socket]:
    """Those of `sides` that have something to read, TLS's own buffer included."""
    held: list[socket.socket] = [side for side in sides if isinstance(side, ssl.SSLSocket) and side.pending()]
    return held or select.select(sides, [], [], seconds)[0]


def _host(host: str | None) -> str:
    if not host:
        raise ValueError("no host")
    return host


def _pipe(client: socket.socket, upstream: socket.socket, gate: Gate, prefix: str) -> None:
    """Copies both ways until one side ends; the answer's head is adapted on the way."""
    head, rest = _answer_head(client, upstream, gate.idle_timeout, prefix)
    if not head:
        return
    client.sendall(head + rest)
    others: dict[Any, socket.socket] = {client: upstream, upstream: client}
    while True:
        ready = _waiting(client, upstream, seconds=gate.idle_timeout)
        if not ready:
            return
        for side in ready:
            data = side.recv(_CHUNK)
            if not data or (side is upstream and not gate.take(len(data))):
                return
            others[side].sendall(data)


def _answer_head(
    client: socket.socket, upstream: socket.socket, idle: float, prefix: str
) -> tuple[bytes, bytes]:
    """Sends the request's body on until the answer's head is there; it then says `close` and leads here."""
    data = b""
    while b"\r\n\r\n" not in data:
        ready = _waiting(client, upstream, seconds=idle)
        if not ready or len(data) > _HEAD_BYTES:
            return b"", b""
        if client in ready:
            body = client.recv(_CHUNK)
            if not body:
                return b"", b""
            upstream.sendall(body)
        if upstream in ready:
            more = upstream.recv(_CHUNK)
            if not more:
                return b"", b""
            data += more
    head, _, rest = data.partition(b"\r\n\r\n")
    lines = []
    for line in head.decode("latin-1").split("\r\n"):
        name, _, value = line.partition(":")
        if name.lower() == "location":
            lines.append(f"{name}: {_led_back(value.strip(), prefix)}")
        elif name.lower() not in ("connection", "keep-alive"):
            lines.append(line)
    return "\r\n".join([*lines, "Connection: close", "", ""]).encode("latin-1"), rest


def _led_back(location: str, prefix: str) -> str:
    if location.startswith(("http://", "https://")):
        return _inside(location)
    return f"{prefix}{location}" if location.startswith("/") and not location.startswith("//") else location


def _answer(status: str) -> bytes:
    return f"HTTP/1.1 {status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".encode()
