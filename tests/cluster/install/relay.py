"""TCP relay from a port of the bridge to a server of this machine on loopback or a socket file.

Runs while the context is open.
"""

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from dev.settings import BRIDGE_ADDRESS


def to_port(port: int) -> socket.socket:
    """Connect to a port of loopback."""
    return socket.create_connection(("127.0.0.1", port), 10)


def to_file(path: str) -> socket.socket:
    """Connect to a socket file."""
    made = socket.socket(socket.AF_UNIX)
    made.connect(path)
    return made


@contextmanager
def relay(connect: Callable[[], socket.socket]) -> Iterator[int]:
    """Yield a port of the bridge that relays each connection to one opened by `connect`."""
    listener = socket.create_server((BRIDGE_ADDRESS, 0))
    threading.Thread(target=_accept, args=(listener, connect), daemon=True).start()
    try:
        yield int(listener.getsockname()[1])
    finally:
        # A close alone does not wake the thread.
        with suppress(OSError):
            listener.shutdown(socket.SHUT_RDWR)
        listener.close()


def _accept(listener: socket.socket, connect: Callable[[], socket.socket]) -> None:
    with suppress(OSError):
        while True:
            client, _ = listener.accept()
            try:
                server = connect()
            except OSError:
                client.close()
                continue
            for one, other in ((client, server), (server, client)):
                threading.Thread(target=copy, args=(one, other), daemon=True).start()


def copy(source: socket.socket, target: socket.socket) -> None:
    """Copy one connection to another, including its end."""
    with suppress(OSError):
        while data := source.recv(64 * 1024):
            target.sendall(data)
    with suppress(OSError):
        target.shutdown(socket.SHUT_WR)
