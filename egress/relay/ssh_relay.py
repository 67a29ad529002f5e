"""The way out to one ssh server: a relay on loopback that checks the address and hears who answers.

libgit2 connects to it in place of the far server and speaks ssh through it. Where a key exchange begins,
the server shows its host key in the open; `shown` is that key. What proves that the server owns it is the
exchange itself, which is libgit2's affair. Called by egress.git.remote.
"""

import contextlib
import select
import socket
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from egress.addresses import AddressRefused
from egress.git.host_key import Listener
from egress.git.repository_url import parse
from egress.relay.listener import Door
from egress.relay.relay import Way

_CHUNK = 64 << 10
_WAITING = 4


class Tunnel(Way):
    """A way to the server of the address `home` and to no other; `shown` is the host key it showed."""

    def __init__(self, *about: Any, home: str, **more: Any) -> None:
        super().__init__(*about, **more)
        self.place = parse(home)
        self._door = Door("tunnel", self._serve, _WAITING)
        self.port = self._door.port

    def open(self) -> None:
        """Connections are taken from now on."""
        self._door.open()

    def close(self) -> None:
        """And no more."""
        self._door.close()

    def address(self, url: str) -> str:
        """What to ask for in place of `url`, so that the way leads through here."""
        parts = urlsplit(url)
        return urlunsplit(("ssh", f"{parse(url).user or 'git'}@127.0.0.1:{self.port}", parts.path, "", ""))

    def _serve(self, client: socket.socket) -> None:
        with contextlib.suppress(OSError):
            self.deadline.admit(client)
            client.settimeout(self.idle_timeout)
            with contextlib.suppress(AddressRefused):
                upstream = self.connect(self.place.host, self.place.port)
                try:
                    with upstream:
                        _copy(client, upstream, self)
                finally:
                    self.deadline.release(upstream)
        self.deadline.release(client)


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
