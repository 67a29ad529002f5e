"""SSH relay on loopback that checks the address and records the host key. Called by egress.git.remote.

libgit2 connects to the relay instead of the server and speaks ssh through it. The server sends its host key
unencrypted at the start of the key exchange; `host_key` is that key. The exchange itself, which libgit2 runs,
proves that the server owns it.
"""

import contextlib
import socket
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from egress.addresses import AddressRefused
from egress.git.host_key import HostKeyReader
from egress.git.repository_url import parse
from egress.relay.listener import LoopbackListener
from egress.relay.relay import EgressRelay

_CHUNK_BYTES = 64 << 10
_LISTEN_BACKLOG = 4


class SshRelay(EgressRelay):
    """A relay to the server of `repository_url` only; `host_key` is the key that the server presented."""

    def __init__(self, *about: Any, repository_url: str, **more: Any) -> None:
        super().__init__(*about, **more)
        self.server = parse(repository_url)
        self._listener = LoopbackListener("ssh-relay", self._serve, _LISTEN_BACKLOG)
        self.port = self._listener.port

    def open(self) -> None:
        """Start accepting connections."""
        self._listener.open()

    def close(self) -> None:
        """Stop accepting connections."""
        self._listener.close()

    def local_url(self, url: str) -> str:
        """Return the loopback URL that stands for `url`."""
        parts = urlsplit(url)
        return urlunsplit(("ssh", f"{parse(url).user or 'git'}@127.0.0.1:{self.port}", parts.path, "", ""))

    def _serve(self, client: socket.socket) -> None:
        with contextlib.suppress(OSError):
            self.deadline.add(client)
            client.settimeout(self.idle_timeout)
            with contextlib.suppress(AddressRefused):
                upstream = self.connect(self.server.host, self.server.port)
                try:
                    with upstream:
                        _copy(client, upstream, self)
                finally:
                    self.deadline.remove(upstream)
        self.deadline.remove(client)


def _copy(client: socket.socket, upstream: socket.socket, relay: SshRelay) -> None:
    """Copy in both directions until one side closes, idles too long or exceeds the byte limit."""
    key_reader = HostKeyReader()
    others = {client: upstream, upstream: client}
    while True:
        ready = relay.readable(client, upstream)
        if not ready:
            return
        for side in ready:
            data = side.recv(_CHUNK_BYTES)
            if not data:
                return
            if side is upstream:
                if not relay.count_received(len(data)):
                    return
                # Set before the data is forwarded, because libgit2's callback reads it.
                relay.host_key = key_reader.feed(data) or relay.host_key
                if key_reader.not_ssh:
                    return
            others[side].sendall(data)
