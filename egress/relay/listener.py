"""A listener on loopback whose connections are served by threads. Called by egress.relay.http_relay and .tunnel.

The standard library's server asks itself again and again whether it is to end: to begin and to end one took
as long as the rest of a short listing.
"""

import contextlib
import socket
import threading
from collections.abc import Callable


class Door:
    """Listens from the beginning, on a port of its own; `serve` gets each connection, and closes none."""

    def __init__(self, name: str, serve: Callable[[socket.socket], None], waiting: int = 16) -> None:
        """`name` is the threads'; so many connections wait at most. Raises OSError where no port is free."""
        self._name, self._serve = name, serve
        self._socket = socket.create_server(("127.0.0.1", 0), backlog=waiting)
        self._opened = False
        self.port = int(self._socket.getsockname()[1])

    def open(self) -> None:
        """Connections are taken from now on."""
        self._opened = True
        threading.Thread(target=self._take, daemon=True, name=self._name).start()

    def close(self) -> None:
        """And no more. Those that are served go on."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        if not self._opened:
            self._socket.close()

    def _take(self) -> None:
        # Closed here alone: elsewhere its number could be another socket's when it is waited at again.
        with self._socket:
            while True:
                try:
                    connection = self._socket.accept()[0]
                except ConnectionAbortedError:
                    continue
                except OSError:
                    return
                threading.Thread(target=self._one, args=(connection,), daemon=True, name=self._name).start()

    def _one(self, connection: socket.socket) -> None:
        with connection:
            self._serve(connection)
