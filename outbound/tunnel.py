"""The way out to one ssh server: a relay on loopback that checks the address and hears who answers.

libgit2 connects to it in place of the far server and speaks ssh through it. Where a key exchange begins,
the server shows its host key in the open; `shown` is that key. What proves that the server owns it is the
exchange itself, which is libgit2's affair. Called by outbound.git_access.
"""

import contextlib
import select
import socket
import socketserver
import threading
from typing import Any, cast
from urllib.parse import urlsplit, urlunsplit

from outbound.addresses import AddressRefused
from outbound.host_key import Listener
from outbound.repository_url import parse
from outbound.way import Way

_CHUNK = 64 << 10
_ACCEPT = 1.0


class Tunnel(Way):
    """A way to the server of the address `home` and to no other; `shown` is the host key it showed."""

    def __init__(self, *about: Any, home: str, **more: Any) -> None:
        super().__init__(*about, **more)
        self.place = parse(home)
        self._server = _Server(("127.0.0.1", 0), _Connection)
        self._server.tunnel = self
        self._server.socket.settimeout(_ACCEPT)
        self.port = int(self._server.server_address[1])

    def open(self) -> None:
        """Connections are taken from now on."""
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True, name="tunnel").start()

    def close(self) -> None:
        """And no more."""
        self._server.shutdown()
        self._server.server_close()

    def address(self, url: str) -> str:
        """What to ask for in place of `url`, so that the way leads through here."""
        parts = urlsplit(url)
        return urlunsplit(("ssh", f"{parse(url).user or 'git'}@127.0.0.1:{self.port}", parts.path, "", ""))


class _Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
    allow_reuse_address = True
    request_queue_size = 4
    tunnel: Tunnel


class _Connection(socketserver.BaseRequestHandler):
    def handle(self) -> None:
        client = cast(socket.socket, self.request)
        tunnel = cast(_Server, self.server).tunnel
        with contextlib.suppress(OSError):
            tunnel.deadline.admit(client)
            client.settimeout(tunnel.idle_timeout)
            with contextlib.suppress(AddressRefused):
                upstream = tunnel.connect(tunnel.place.host, tunnel.place.port)
                try:
                    with upstream:
                        _copy(client, upstream, tunnel)
                finally:
                    tunnel.deadline.release(upstream)
        tunnel.deadline.release(client)


def _copy(client: socket.socket, upstream: socket.socket, tunnel: Tunnel) -> None:
    """Both ways until one side ends, is silent for too long, or sends too much."""
    listener = Listener()
    others = {client: upstream, upstream: client}
    while True:
        ready = select.select([client, upstream], [], [], tunnel.idle_timeout)[0]
        if not ready:
            return
        for side in ready:
            data = side.recv(_CHUNK)
            if not data:
                return
            if side is upstream:
                if not tunnel.take(len(data)):
                    return
                # Before it is passed on: whoever asks for it has read it from here.
                tunnel.shown = listener.hear(data) or tunnel.shown
                if listener.strange:
                    return
            others[side].sendall(data)
