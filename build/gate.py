"""The only way out while a source is fetched: a small proxy on loopback that checks every connection.

libgit2 resolves names and follows redirects by itself; through this proxy each
of its connections goes to an address that was checked in the same moment. Called
by build.fetch_git. https is tunnelled (CONNECT), so certificates are still
checked by libgit2 against the true host. For plain http libgit2 ignores proxies:
there the gate is the address itself, `/http/host:port/path` stands for the far
one, and redirects are rewritten likewise.
"""

import contextlib
import select
import socket
import socketserver
import threading
from typing import Any, cast
from urllib.parse import urlsplit

from build.addresses import AddressRefused, Resolver, Rules, checked, system_resolver

_HEAD_BYTES = 64 << 10
_CHUNK = 64 << 10


class Gate:
    """A context manager; `proxy` is its address while it is open, `refusals` what it turned away.

    `unknown` are hosts that have no address at all. Connecting and idling are
    bounded by `connect_timeout` and `idle_timeout`, in seconds.
    """

    def __init__(
        self,
        rules: Rules,
        resolve: Resolver = system_resolver,
        connect_timeout: float = 10.0,
        idle_timeout: float = 60.0,
    ) -> None:
        self.rules, self.resolve = rules, resolve
        self.connect_timeout, self.idle_timeout = connect_timeout, idle_timeout
        self.refusals: list[str] = []
        self.unknown: list[str] = []
        self._server = _Server(("127.0.0.1", 0), _Connection)
        self._server.gate = self
        self.proxy = f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> "Gate":
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True, name="gate").start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def address(self, url: str) -> str:
        """What to ask for in place of `url`, so that the way leads through here."""
        return f"{self.proxy}{_inside(url)}" if url.startswith("http://") else url

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
            method, host, port, forwarded = _target(head)
            far = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
            prefix = "" if method == "CONNECT" else f"/http/{far}"
        except ValueError:
            client.sendall(_answer("400 Bad Request"))
            return
        try:
            upstream = gate.connect(host, port)
        except AddressRefused:
            client.sendall(_answer("403 Forbidden"))
            return
        except OSError:
            client.sendall(_answer("502 Bad Gateway"))
            return
        with upstream:
            upstream.settimeout(gate.idle_timeout)
            if method == "CONNECT":
                client.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
            else:
                upstream.sendall(forwarded + rest)
            _pipe(client, upstream, gate.idle_timeout, prefix)


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
    """Method, host and port of a proxy request, and the head to send on. Raises ValueError."""
    lines = head.decode("latin-1").split("\r\n")
    method, target, version = lines[0].split(" ")
    if method == "CONNECT":
        parts = urlsplit(f"//{target}")
        return method, _host(parts.hostname), parts.port or 443, b""
    if target.startswith("http://"):  # libgit2 writes it as to a proxy, though it connects directly
        target = f"/{target.split('/', 3)[3]}"
    empty, scheme, place, rest = target.split("/", 3)
    if empty or scheme != "http":
        raise ValueError(target)
    parts = urlsplit(f"//{place}")
    dropped = ("host:", "connection:", "keep-alive:")
    kept = [line for line in lines[1:] if not line.lower().startswith(dropped)]
    shown = place.removesuffix(":80")
    text = "\r\n".join([f"{method} /{rest} {version}", f"Host: {shown}", *kept, "Connection: close", "", ""])
    return method, _host(parts.hostname), parts.port or 80, text.encode("latin-1")


def _inside(url: str) -> str:
    parts = urlsplit(url)
    query = f"?{parts.query}" if parts.query else ""
    return f"/http/{parts.netloc}{parts.path or '/'}{query}"


def _host(host: str | None) -> str:
    if not host:
        raise ValueError("no host")
    return host


def _pipe(client: socket.socket, upstream: socket.socket, idle: float, prefix: str) -> None:
    """Copies both ways until one side ends. A `prefix` means plain http: the answer's head is adapted."""
    if prefix:
        head, rest = _answer_head(client, upstream, idle, prefix)
        if not head:
            return
        client.sendall(head + rest)
    others: dict[Any, socket.socket] = {client: upstream, upstream: client}
    while True:
        ready, _, _ = select.select([client, upstream], [], [], idle)
        if not ready:
            return
        for side in ready:
            data = side.recv(_CHUNK)
            if not data:
                return
            others[side].sendall(data)


def _answer_head(
    client: socket.socket, upstream: socket.socket, idle: float, prefix: str
) -> tuple[bytes, bytes]:
    """Sends the request's body on until the answer's head is there; it then says `close` and leads here."""
    data = b""
    while b"\r\n\r\n" not in data:
        ready, _, _ = select.select([client, upstream], [], [], idle)
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
    if location.startswith("http://"):
        return _inside(location)
    return f"{prefix}{location}" if location.startswith("/") and not location.startswith("//") else location


def _answer(status: str) -> bytes:
    return f"HTTP/1.1 {status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".encode()
