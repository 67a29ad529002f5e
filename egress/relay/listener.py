"""Threaded listener on loopback. Called by egress.relay.http_relay and egress.relay.ssh_relay.

The standard library's server polls for its shutdown; starting and stopping one took as long as the rest of a
short ref listing.
"""

import contextlib
import socket
import threading
from collections.abc import Callable


class LoopbackListener:
    """Bind a free port on construction; `serve` gets each connection and must not close it."""

    def __init__(self, name: str, serve: Callable[[socket.socket], None], backlog: int = 16) -> None:
        """Bind the port; `name` is the name of the threads. Raises OSError where no port is free."""
        self._name, self._serve = name, serve
        self._socket = socket.create_server(("127.0.0.1", 0), backlog=backlog)
        self._opened = False
        self.port = int(self._socket.getsockname()[1])

    def open(self) -> None:
        """Start accepting connections."""
        self._opened = True
        threading.Thread(target=self._accept, daemon=True, name=self._name).start()

    def close(self) -> None:
        """Stop accepting connections; open ones continue."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        if not self._opened:
            self._socket.close()

    def _accept(self) -> None:
        # Closed only in this thread: otherwise accept could wait on a reused descriptor.
        with self._socket:
            while True:
                try:
                    connection = self._socket.accept()[0]
                except ConnectionAbortedError:
                    continue
                except OSError:
                    return
                threading.Thread(
                    target=self._handle, args=(connection,), daemon=True, name=self._name
                ).start()

    def _handle(self, connection: socket.socket) -> None:
        with connection:
            self._serve(connection)
