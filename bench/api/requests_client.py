"""Low-overhead HTTP client: keep-alive connections, prepared bytes, nothing parsed.

Called by `bench.api.requests` and `bench.api.lists`.
"""

import socket
import time
from collections.abc import Callable
from urllib.parse import urlsplit

CONNECTION_COUNT = 8
_LENGTH = b"content-length: "


class HttpConnection:
    """One keep-alive connection to a server."""

    def __init__(self, url: str, key: str = "") -> None:
        parts = urlsplit(url)
        self._socket = socket.create_connection((parts.hostname, parts.port), timeout=30)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._head = f"Host: {parts.netloc}\r\n" + (f"Authorization: Bearer {key}\r\n" if key else "")

    def send(self, path: str, accept: str = "application/json") -> None:
        """Send a request without waiting."""
        self._socket.sendall(f"GET {path} HTTP/1.1\r\n{self._head}Accept: {accept}\r\n\r\n".encode())

    def receive(self) -> bytes:
        """Return the body of the response. Raises RuntimeError unless the status is 200."""
        data = b""
        while b"\r\n\r\n" not in data:
            data += self._more()
        head, _, body = data.partition(b"\r\n\r\n")
        if not head.startswith(b"HTTP/1.1 200"):
            raise RuntimeError(head.decode("latin-1") + "\n" + body.decode("latin-1"))
        lower = head.lower()
        at = lower.index(_LENGTH) + len(_LENGTH)
        length = int(lower[at:].partition(b"\r\n")[0])
        while len(body) < length:
            body += self._more()
        return body

    def close(self) -> None:
        """Close the connection."""
        self._socket.close()

    def _more(self) -> bytes:
        chunk = self._socket.recv(65536)
        if not chunk:
            raise RuntimeError("the server closed the connection")
        return chunk


def rate(url: str, key: str, seconds: float, path: Callable[[int], tuple[str, str]]) -> float:
    """Return requests per second over parallel connections; `path` returns path and Accept by number."""
    connections = [HttpConnection(url, key) for _ in range(CONNECTION_COUNT)]
    done, started = 0, time.perf_counter()
    try:
        for number, connection in enumerate(connections):
            connection.send(*path(number))
        while (elapsed := time.perf_counter() - started) < seconds:
            for connection in connections:
                connection.receive()
                done += 1
                connection.send(*path(done + CONNECTION_COUNT))
        return done / elapsed
    finally:
        for connection in connections:
            connection.close()


def request_milliseconds(connection: HttpConnection, path: str, accept: str = "application/json") -> float:
    """Return the milliseconds from the request to the last byte of the response."""
    started = time.perf_counter()
    connection.send(path, accept)
    connection.receive()
    return (time.perf_counter() - started) * 1000
