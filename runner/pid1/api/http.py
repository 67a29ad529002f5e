"""One keep-alive HTTP/1.1 connection to the facade. Used by `facade`, one for each worker.

The standard library's client would be shorter here, but importing it takes longer than a whole claim; so
does `socket`, of which only the C part is needed.
"""

from __future__ import annotations

import _socket

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

LARGEST_ANSWER = 8 * 1024 * 1024
_LARGEST_HEAD = 64 * 1024


class WireError(OSError):
    """No whole answer: refused, cut off, too slow, or not HTTP."""


class Answer:
    """Status and body of one answer."""

    __slots__ = ("body", "status")

    def __init__(self, status: int, body: bytes) -> None:
        self.status = status
        self.body = body


class Wire:
    """A connection that is made when needed and kept between calls. Not for use by two threads."""

    def __init__(self, url: str) -> None:
        """Raises ValueError for an address that is not http or https."""
        scheme, _, rest = url.partition("://")
        host, _, path = rest.partition("/")
        name, colon, port = host.rpartition(":")
        if colon and port.isdigit():
            self._name, self._port = name, int(port)
        else:
            self._name, self._port = host, 443 if scheme == "https" else 80
        self._name = self._name.strip("[]")
        if scheme not in ("http", "https") or not self._name:
            raise ValueError(f"CREWYARD_INTERNAL_URL is {url!r}: it must be http://host[:port]")
        try:
            # Bytes: as text, the name would go through the encoding of international names and its imports.
            self._address: bytes | str = self._name.encode("ascii")
        except UnicodeEncodeError:
            self._address = self._name
        self._tls = scheme == "https"
        self._host = host
        self._base = "/" + path.rstrip("/") if path.rstrip("/") else ""
        self._socket: _socket.socket | None = None
        self._rest = b""

    def call(
        self, method: str, path: str, headers: Mapping[str, str], body: bytes | Iterable[bytes], length: int,
        timeout: float,
    ) -> Answer:  # fmt: skip
        """One request and its answer; `timeout` bounds every wait for the other side. Raises WireError.

        A kept connection that the other side has closed meanwhile is made anew once, without a pause, where
        the body can be sent again.
        """
        head = [f"{method} {self._base}{path} HTTP/1.1", f"Host: {self._host}", f"Content-Length: {length}"]
        head += [f"{name}: {value}" for name, value in headers.items()]
        text = ("\r\n".join(head) + "\r\n\r\n").encode("latin-1")
        reused = self._socket is not None
        try:
            return self._exchange(text, body, timeout)
        except _Unanswered as error:
            if not (reused and isinstance(body, bytes)):
                raise WireError(str(error)) from error
        try:
            return self._exchange(text, body, timeout)
        except _Unanswered as error:
            raise WireError(str(error)) from error

    def close(self) -> None:
        """Closes the connection; the next call makes a new one."""
        if self._socket is not None:
            self._socket.close()
        self._socket, self._rest = None, b""

    def _exchange(self, head: bytes, body: bytes | Iterable[bytes], timeout: float) -> Answer:
        unsent: OSError | None = None
        try:
            wire = self._connected(timeout)
            try:
                if isinstance(body, bytes):
                    wire.sendall(head + body)
                else:
                    wire.sendall(head)
                    for chunk in body:
                        wire.sendall(chunk)
            except (BrokenPipeError, ConnectionResetError) as error:
                unsent = error  # it may have answered, and refused, before it took the whole body
            return self._answer(wire, unsent)
        except (_Unanswered, WireError):
            self.close()
            raise
        except OSError as error:
            self.close()
            raise WireError(f"{self._host}: {error}") from error
        except BaseException:
            self.close()  # half a body is on the way: the connection is of no more use
            raise

    def _connected(self, timeout: float) -> _socket.socket:
        if self._socket is None:
            made = self._connection(timeout)
            made.setsockopt(_socket.IPPROTO_TCP, _socket.TCP_NODELAY, 1)
            if self._tls:
                import socket
                import ssl

                whole = socket.socket(fileno=made.detach())
                whole.settimeout(timeout)
                made = ssl.create_default_context().wrap_socket(whole, server_hostname=self._name)
            self._socket, self._rest = made, b""
        self._socket.settimeout(timeout)
        return self._socket

    def _connection(self, timeout: float) -> _socket.socket:
        """To the first of the name's addresses that answers."""
        trouble: OSError = WireError(f"{self._host} has no address")
        for family, kind, protocol, _, to in _socket.getaddrinfo(
            self._address, self._port, 0, _socket.SOCK_STREAM
        ):
            made = _socket.socket(family, kind | _socket.SOCK_CLOEXEC, protocol)
            try:
                made.settimeout(timeout)
                made.connect(to)
            except OSError as error:
                made.close()
                trouble = error
            else:
                return made
        raise trouble

    def _answer(self, wire: _socket.socket, unsent: OSError | None) -> Answer:
        while True:
            head = self._head(wire)
            lines = head.decode("latin-1").split("\r\n")
            parts = lines[0].split(" ", 2)
            if len(parts) < 2 or not parts[0].startswith("HTTP/1.") or not parts[1].isdigit():
                raise WireError(f"{self._host} answered what is not HTTP/1.1")
            status = int(parts[1])
            if status >= 200:
                break
        fields = {}
        for line in lines[1:]:
            name, _, value = line.partition(":")
            fields[name.strip().lower()] = value.strip()
        ends = fields.get("connection", "").lower() == "close" or parts[0] == "HTTP/1.0"
        if status in (204, 304):
            body = b""
        elif "chunked" in fields.get("transfer-encoding", "").lower():
            body = self._chunked(wire)
        elif fields.get("content-length", "").isdigit():
            body = self._take(wire, int(fields["content-length"]))
        else:
            ends, body = True, self._until_end(wire)
        if ends or unsent is not None:
            self.close()
        return Answer(status, body)

    def _head(self, wire: _socket.socket) -> bytes:
        while (end := self._rest.find(b"\r\n\r\n")) < 0:
            if len(self._rest) > _LARGEST_HEAD:
                raise WireError(f"{self._host} answered with too long a head")
            self._more(wire, first=not self._rest)
        head, self._rest = self._rest[:end], self._rest[end + 4 :]
        return head

    def _more(self, wire: _socket.socket, first: bool = False) -> None:
        try:
            data = wire.recv(65536)
        except (ConnectionResetError, BrokenPipeError) as error:
            if first:
                raise _Unanswered(f"{self._host}: {error}") from error
            raise
        if not data:
            text = f"{self._host} closed the connection"
            raise _Unanswered(text) if first else WireError(text)
        self._rest += data

    def _take(self, wire: _socket.socket, size: int) -> bytes:
        if size > LARGEST_ANSWER:
            raise WireError(f"{self._host} answered with {size} bytes, more than this runner takes")
        while len(self._rest) < size:
            self._more(wire)
        body, self._rest = self._rest[:size], self._rest[size:]
        return body

    def _line(self, wire: _socket.socket) -> bytes:
        while (end := self._rest.find(b"\r\n")) < 0:
            if len(self._rest) > _LARGEST_HEAD:
                raise WireError(f"{self._host} answered with too long a line")
            self._more(wire)
        line, self._rest = self._rest[:end], self._rest[end + 2 :]
        return line

    def _chunked(self, wire: _socket.socket) -> bytes:
        body = b""
        while True:
            try:
                size = int(self._line(wire).split(b";")[0], 16)
            except ValueError:
                raise WireError(f"{self._host} answered with a broken chunk") from None
            if not 0 <= size <= LARGEST_ANSWER - len(body):
                raise WireError(f"{self._host} answered with more than this runner takes")
            if size == 0:
                while self._line(wire):
                    pass
                return body
            body += self._take(wire, size)
            self._line(wire)

    def _until_end(self, wire: _socket.socket) -> bytes:
        while len(self._rest) <= LARGEST_ANSWER:
            data = wire.recv(65536)
            if not data:
                body, self._rest = self._rest, b""
                return body
            self._rest += data
        raise WireError(f"{self._host} answered with more than this runner takes")


class _Unanswered(OSError):
    """The connection ended before the first byte of an answer."""
