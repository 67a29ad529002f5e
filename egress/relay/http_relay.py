"""HTTP relay on loopback that checks every outbound connection. Called by egress.git.remote.

libgit2 resolves names and follows redirects on its own; through the relay each connection goes to an address
checked just before. It is not an HTTP proxy, because libgit2 ignores a proxy for plain http and hangs on an
untrusted certificate behind one. Instead `/https/host:port/path` stands for the upstream URL, redirects are
rewritten the same way, and the relay speaks TLS and verifies the upstream certificate.
"""

import contextlib
import functools
import socket
import ssl
from typing import Any

from egress.addresses import AddressRefused
from egress.relay.http_messages import (
    empty_response,
    parse_request_head,
    relay_path,
    rewrite_response_head,
    same_server,
    without_credentials,
)
from egress.relay.listener import LoopbackListener
from egress.relay.relay import EgressRelay

_MAX_HEAD_BYTES = 64 << 10
_CHUNK_BYTES = 64 << 10


class CaBundleInvalid(OSError):
    """The configured CA bundle contains no certificate."""


class HttpRelay(EgressRelay):
    """A relay to http and https servers that follows redirects to any server.

    With a `repository_url`, only the server of that URL gets the credentials. `ca` is a PEM bundle that is
    trusted in addition to the system's; `certificate_errors` lists hosts without a valid certificate.
    """

    def __init__(self, *about: Any, ca: str = "", repository_url: str = "", **more: Any) -> None:
        super().__init__(*about, **more)
        self._ca, self.repository_url = ca, repository_url
        self._listener = LoopbackListener("http-relay", self._serve)
        self._local_base = f"http://127.0.0.1:{self._listener.port}"

    def open(self) -> None:
        """Start accepting connections."""
        self._listener.open()

    def close(self) -> None:
        """Stop accepting connections."""
        self._listener.close()

    def local_url(self, url: str) -> str:
        """Return the loopback URL that stands for `url`."""
        return f"{self._local_base}{relay_path(url)}"

    def start_tls(self, plain: socket.socket, host: str) -> socket.socket:
        """Start TLS over `plain` and verify the certificate of `host`. Raises OSError."""
        try:
            context = tls_context(self._ca)
            tls = context.wrap_socket(plain, server_hostname=host, do_handshake_on_connect=False)
            self.deadline.remove(plain)
            plain = tls
            self.deadline.add(tls)
            tls.do_handshake()
            return tls
        except OSError as error:
            self.deadline.remove(plain)
            plain.close()
            if isinstance(error, ssl.SSLCertVerificationError):
                self.certificate_errors.append(f"{host}: {error.verify_message}")
            elif isinstance(error, CaBundleInvalid):
                self.certificate_errors.append(f"{host} cannot be checked: {error}")
            raise

    def _serve(self, client: socket.socket) -> None:
        """Serve one request of libgit2; the connection ends with its response."""
        client.settimeout(self.idle_timeout)
        with contextlib.suppress(OSError):
            self.deadline.add(client)
            head, body_start = _read_head(client)
            if head:
                self._forward(client, head, body_start)
        self.deadline.remove(client)

    def _forward(self, client: socket.socket, head: bytes, body_start: bytes) -> None:
        try:
            scheme, host, port, forwarded = parse_request_head(head)
            if self.repository_url and not same_server(self.repository_url, scheme, host, port):
                forwarded = without_credentials(forwarded)
        except ValueError:
            client.sendall(empty_response("400 Bad Request"))
            return
        try:
            upstream = self.connect(host, port)
            if scheme == "https":
                upstream = self.start_tls(upstream, host)
        except AddressRefused:
            client.sendall(empty_response("403 Forbidden"))
            return
        except OSError:
            client.sendall(empty_response("502 Bad Gateway"))
            return
        try:
            with upstream:
                upstream.sendall(forwarded + body_start)
                server = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
                _pipe(client, upstream, self, f"/{scheme}/{server}")
        finally:
            self.deadline.remove(upstream)


def _read_head(stream: socket.socket) -> tuple[bytes, bytes]:
    data = b""
    while b"\r\n\r\n" not in data:
        more = stream.recv(_CHUNK_BYTES)
        if not more or len(data) > _MAX_HEAD_BYTES:
            return b"", b""
        data += more
    head, _, body_start = data.partition(b"\r\n\r\n")
    return head, body_start


@functools.lru_cache(maxsize=64)
def tls_context(ca: str) -> ssl.SSLContext:
    """Return a context that trusts the system's CAs and those in `ca`. Raises CaBundleInvalid.

    Cached, because loading the system's more than 100 CAs takes longer than listing the refs of a remote.
    """
    context = ssl.create_default_context()
    if ca:
        try:
            context.load_verify_locations(cadata=ca)
        except (ssl.SSLError, ValueError, TypeError):
            raise CaBundleInvalid("ca.crt contains no certificate in PEM format") from None
    return context


def _pipe(client: socket.socket, upstream: socket.socket, relay: HttpRelay, prefix: str) -> None:
    """Copy in both directions until one side closes; rewrite the response head."""
    head, body_start = _relay_response_head(client, upstream, relay, prefix)
    if not head:
        return
    client.sendall(head + body_start)
    others: dict[Any, socket.socket] = {client: upstream, upstream: client}
    while True:
        ready = relay.readable(client, upstream)
        if not ready:
            return
        for side in ready:
            data = _receive(side)
            if data is None:
                continue
            if not data or (side is upstream and not relay.count_received(len(data))):
                return
            others[side].sendall(data)


def _receive(stream: socket.socket) -> bytes | None:
    """Return the bytes of a readable stream, none at its end, or None if it holds no data yet.

    TLS data may be a session ticket or part of a record: waiting for the rest would stop the other direction.
    """
    if not isinstance(stream, ssl.SSLSocket):
        return stream.recv(_CHUNK_BYTES)
    timeout = stream.gettimeout()
    stream.settimeout(0)
    try:
        return stream.recv(_CHUNK_BYTES)
    except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
        return None
    finally:
        stream.settimeout(timeout)


def _relay_response_head(
    client: socket.socket, upstream: socket.socket, relay: HttpRelay, prefix: str
) -> tuple[bytes, bytes]:
    """Forward the request body until the response head arrives; return the new head and the bytes after it.

    Informational heads (1xx) are not forwarded, because the final head after one would pass unchanged.
    """
    data = b""
    while True:
        head, end, body_start = data.partition(b"\r\n\r\n")
        if end and not head.startswith((b"HTTP/1.1 1", b"HTTP/1.0 1")):
            return rewrite_response_head(head, prefix), body_start
        if end:
            data = body_start
            continue
        ready = relay.readable(client, upstream)
        if not ready or len(data) > _MAX_HEAD_BYTES:
            return b"", b""
        if client in ready:
            body = client.recv(_CHUNK_BYTES)
            if not body:
                return b"", b""
            upstream.sendall(body)
        if upstream in ready:
            more = _receive(upstream)
            if more is None:
                continue
            if not more or not relay.count_received(len(more)):
                return b"", b""
            data += more
