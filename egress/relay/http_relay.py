"""The way out to http and https servers: a small relay on loopback that checks every connection.

libgit2 resolves names and follows redirects by itself; here each of its
connections goes to an address that was checked in the same moment. Called by
egress.git.remote. It is no proxy, since libgit2 ignores one for plain http and
hangs on an untrusted certificate behind one: `/https/host:port/path` stands for
the far address, redirects are rewritten likewise, and TLS is spoken from here,
with the certificate checked against the far host.
"""

import contextlib
import functools
import select
import socket
import ssl
from typing import Any

from egress.addresses import AddressRefused
from egress.relay.http_messages import adapted, answer, inside, same_server, target_of, without_credentials
from egress.relay.listener import Door
from egress.relay.relay import Way

_HEAD_BYTES = 64 << 10
_CHUNK = 64 << 10


class NoAuthority(OSError):
    """What was given as certificates of authorities is none."""


class Gate(Way):
    """A way to http and https servers, wherever they redirect to.

    With a `home`, credentials reach no other server than that address's.
    `ca` are certificates in PEM form that are trusted besides the system's;
    `untrusted` are hosts whose certificate is not valid.
    """

    def __init__(self, *about: Any, ca: str = "", home: str = "", **more: Any) -> None:
        super().__init__(*about, **more)
        self._ca, self.home = ca, home
        self._door = Door("gate", self._serve)
        self._here = f"http://127.0.0.1:{self._door.port}"

    def open(self) -> None:
        """Connections are taken from now on."""
        self._door.open()

    def close(self) -> None:
        """And no more."""
        self._door.close()

    def address(self, url: str) -> str:
        """What to ask for in place of `url`, so that the way leads through here."""
        return f"{self._here}{inside(url)}"

    def secured(self, plain: socket.socket, host: str) -> socket.socket:
        """TLS over `plain`, with the certificate of `host`. Raises OSError."""
        try:
            context = trusting(self._ca)
            secured = context.wrap_socket(plain, server_hostname=host, do_handshake_on_connect=False)
            self.deadline.release(plain)
            plain = secured
            self.deadline.admit(secured)
            secured.do_handshake()
            return secured
        except OSError as error:
            self.deadline.release(plain)
            plain.close()
            if isinstance(error, ssl.SSLCertVerificationError):
                self.untrusted.append(f"{host}: {error.verify_message}")
            elif isinstance(error, NoAuthority):
                self.untrusted.append(f"{host} cannot be checked: {error}")
            raise

    def _serve(self, client: socket.socket) -> None:
        """One request of libgit2: the connection ends with its answer."""
        client.settimeout(self.idle_timeout)
        with contextlib.suppress(OSError):
            self.deadline.admit(client)
            head, rest = _read_head(client)
            if head:
                self._answer(client, head, rest)
        self.deadline.release(client)

    def _answer(self, client: socket.socket, head: bytes, rest: bytes) -> None:
        try:
            scheme, host, port, forwarded = target_of(head)
            if self.home and not same_server(self.home, scheme, host, port):
                forwarded = without_credentials(forwarded)
        except ValueError:
            client.sendall(answer("400 Bad Request"))
            return
        try:
            upstream = self.connect(host, port)
            if scheme == "https":
                upstream = self.secured(upstream, host)
        except AddressRefused:
            client.sendall(answer("403 Forbidden"))
            return
        except OSError:
            client.sendall(answer("502 Bad Gateway"))
            return
        try:
            with upstream:
                upstream.sendall(forwarded + rest)
                far = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
                _pipe(client, upstream, self, f"/{scheme}/{far}")
        finally:
            self.deadline.release(upstream)


def _read_head(stream: socket.socket) -> tuple[bytes, bytes]:
    data = b""
    while b"\r\n\r\n" not in data:
        more = stream.recv(_CHUNK)
        if not more or len(data) > _HEAD_BYTES:
            return b"", b""
        data += more
    head, _, rest = data.partition(b"\r\n\r\n")
    return head, rest


@functools.lru_cache(maxsize=64)
def trusting(ca: str) -> ssl.SSLContext:
    """What trusts the system's authorities and those in `ca`. Raises NoAuthority where it holds none.

    Kept, since reading the system's hundred and more takes longer than a listing.
    """
    context = ssl.create_default_context()
    if ca:
        try:
            context.load_verify_locations(cadata=ca)
        except (ssl.SSLError, ValueError, TypeError):
            raise NoAuthority("ca.crt holds no certificate in PEM form") from None
    return context


def _waiting(*sides: socket.socket, seconds: float) -> list[socket.socket]:
    """Those of `sides` that have something to read, TLS's own buffer included."""
    held: list[socket.socket] = [side for side in sides if isinstance(side, ssl.SSLSocket) and side.pending()]
    return held or select.select(sides, [], [], seconds)[0]


def _pipe(client: socket.socket, upstream: socket.socket, gate: Gate, prefix: str) -> None:
    """Copies both ways until one side ends; the answer's head is adapted on the way."""
    head, rest = _answer_head(client, upstream, gate, prefix)
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
    client: socket.socket, upstream: socket.socket, gate: Gate, prefix: str
) -> tuple[bytes, bytes]:
    """Sends the request's body on until the answer's head is there; it then says `close` and leads here.

    Heads that only announce another one (1xx) stay here: what follows one would be passed on as it is.
    """
    data = b""
    while True:
        head, end, rest = data.partition(b"\r\n\r\n")
        if end and not head.startswith((b"HTTP/1.1 1", b"HTTP/1.0 1")):
            return adapted(head, prefix), rest
        if end:
            data = rest
            continue
        ready = _waiting(client, upstream, seconds=gate.idle_timeout)
        if not ready or len(data) > _HEAD_BYTES:
            return b"", b""
        if client in ready:
            body = client.recv(_CHUNK)
            if not body:
                return b"", b""
            upstream.sendall(body)
        if upstream in ready:
            more = upstream.recv(_CHUNK)
            if not more or not gate.take(len(more)):
                return b"", b""
            data += more
