"""Sockets that count connections or misbehave, for tests of egress."""

import contextlib
import socket
import threading
from collections.abc import Callable, Iterator

Treatment = Callable[[socket.socket], None]


class Listener:
    """Listens on a free port (or `port`) of `address` and counts its connections.

    `treatment` gets every connection in its own thread; without one it is closed.
    """

    def __init__(self, address: str = "127.0.0.1", treatment: Treatment | None = None, port: int = 0) -> None:
        self.closed = threading.Event()
        self.visits = 0
        self._treatment = treatment
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        dual_stack = address == "::"
        self._socket = socket.create_server((address, port), family=family, dualstack_ipv6=dual_stack)
        self.port = int(self._socket.getsockname()[1])
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self._socket.accept()
                self.visits += 1
                threading.Thread(target=self._treat, args=(connection,), daemon=True).start()

    def _treat(self, connection: socket.socket) -> None:
        with connection, contextlib.suppress(OSError):
            connection.settimeout(60)
            if self._treatment:
                self._treatment(connection)

    def close(self) -> None:
        """Close the socket and set `closed`."""
        self.closed.set()
        with contextlib.suppress(OSError):
            # A close alone leaves the thread accepting.
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()


@contextlib.contextmanager
def listening(
    address: str = "127.0.0.1", treatment: Treatment | None = None, port: int = 0
) -> Iterator[Listener]:
    """Run a Listener while the context is open."""
    listener = Listener(address, treatment, port)
    try:
        yield listener
    finally:
        listener.close()


@contextlib.contextmanager
def unresponsive_port() -> Iterator[int]:
    """Yield a port that does not respond to connects: its accept queue is full."""
    with contextlib.ExitStack() as stack:
        server = stack.enter_context(socket.socket())
        server.bind(("127.0.0.1", 0))
        server.listen(0)
        for _ in range(4):
            filler = stack.enter_context(socket.socket())
            filler.setblocking(False)
            filler.connect_ex(server.getsockname())
        yield int(server.getsockname()[1])
