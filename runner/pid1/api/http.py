"""A keep-alive HTTP/1.1 connection to the internal API. Used by `client`, one per worker.

Importing the standard library's HTTP client takes longer than a whole claim, and so does `socket`, of which
only the C part is needed.
"""

from __future__ import annotations

import _socket

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

MAX_RESPONSE_BYTES = 8 * 1024 * 1024
_MAX_HEAD_BYTES = 64 * 1024


class HTTPConnectionError(OSError):
    """No complete response: connection refused or closed, timeout, or not HTTP."""


class HTTPResponse:
    """Status and body of a response."""

    __slots__ = ("body", "status")

    def __init__(self, status: int, body: bytes) -> None:
        self.status = status
        self.body = body


class KeepAliveConnection:
    """A connection opened on demand and kept between calls. Not thread-safe, except for `abort`."""

    def __init__(self, url: str, authorities: str = "") -> None:
        """Parse the URL. Raises ValueError if it is not http or https.

        With `authorities` (PEM), accept a certificate of theirs only; else, of those of the system.
        """
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
            # Bytes: for str, getaddrinfo would import and apply the IDNA codec.
            self._address: bytes | str = self._name.encode("ascii")
        except UnicodeEncodeError:
            self._address = self._name
        self._tls = scheme == "https"
        self._authorities = authorities
        self._host = host
        self._base = "/" + path.rstrip("/") if path.rstrip("/") else ""
        self._socket: _socket.socket | None = None
        self._buffer = b""
        self._aborted = False

    def call(
        self, method: str, path: str, headers: Mapping[str, str], body: bytes | Iterable[bytes], length: int,
        timeout: float,
    ) -> HTTPResponse:  # fmt: skip
        """Send one request and return the response; `timeout` bounds each wait. Raises HTTPConnectionError.

        If the server closed the kept connection meanwhile, reconnect once, without a pause, provided that
        the body can be sent again.
        """
        head = [f"{method} {self._base}{path} HTTP/1.1", f"Host: {self._host}", f"Content-Length: {length}"]
        head += [f"{name}: {value}" for name, value in headers.items()]
        text = ("\r\n".join(head) + "\r\n\r\n").encode("latin-1")
        reused = self._socket is not None
        try:
            return self._exchange(text, body, timeout)
        except _NoResponse as error:
            if self._aborted or not (reused and isinstance(body, bytes)):
                raise HTTPConnectionError(str(error)) from error
        try:
            return self._exchange(text, body, timeout)
        except _NoResponse as error:
            raise HTTPConnectionError(str(error)) from error

    def close(self) -> None:
        """Close the connection; the next call opens a new one."""
        if self._socket is not None:
            self._socket.close()
        self._socket, self._buffer = None, b""

    def abort(self) -> None:
        """End the call of another thread, and each later call, with HTTPConnectionError."""
        self._aborted = True
        connection = self._socket
        if connection is not None:
            try:
                # Of TLS too only the socket: the other thread still uses the rest.
                _socket.socket.shutdown(connection, _socket.SHUT_RDWR)
            except OSError:
                return  # closed already

    def _exchange(self, head: bytes, body: bytes | Iterable[bytes], timeout: float) -> HTTPResponse:
        unsent: OSError | None = None
        try:
            connection = self._open_socket(timeout)
            try:
                if isinstance(body, bytes):
                    connection.sendall(head + body)
                else:
                    connection.sendall(head)
                    for chunk in body:
                        connection.sendall(chunk)
            except (BrokenPipeError, ConnectionResetError) as error:
                unsent = error  # the server may have rejected the request before reading the whole body
            return self._read_response(connection, unsent)
        except (_NoResponse, HTTPConnectionError):
            self.close()
            raise
        except OSError as error:
            self.close()
            raise HTTPConnectionError(f"{self._host}: {error}") from error
        except BaseException:
            self.close()  # the body was sent partially, so the connection is unusable
            raise

    def _open_socket(self, timeout: float) -> _socket.socket:
        if self._socket is None:
            opened = self._connect(timeout)
            opened.setsockopt(_socket.IPPROTO_TCP, _socket.TCP_NODELAY, 1)
            if self._tls:
                opened = self._shake_hands(opened, timeout)
            self._socket, self._buffer = opened, b""
        if self._aborted:
            raise HTTPConnectionError(f"the call to {self._host} was aborted")
        self._socket.settimeout(timeout)
        return self._socket

    def _shake_hands(self, opened: _socket.socket, timeout: float) -> _socket.socket:
        """Return the TLS connection on an open one."""
        import socket
        import ssl

        whole = socket.socket(fileno=opened.detach())
        try:
            whole.settimeout(timeout)
            if self._authorities:
                context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
                context.load_verify_locations(cadata=self._authorities)
            else:
                context = ssl.create_default_context()
            return context.wrap_socket(whole, server_hostname=self._name)
        except ssl.SSLCertVerificationError as error:
            whole.close()
            raise HTTPConnectionError(
                f"the certificate of {self._host} is not accepted: {error.verify_message}"
            ) from error
        except BaseException:
            whole.close()
            raise

    def _connect(self, timeout: float) -> _socket.socket:
        """Return a socket connected to the first reachable address of the host."""
        last_error: OSError = HTTPConnectionError(f"{self._host} has no address")
        for family, kind, protocol, _, to in _socket.getaddrinfo(
            self._address, self._port, 0, _socket.SOCK_STREAM
        ):
            opened = _socket.socket(family, kind | _socket.SOCK_CLOEXEC, protocol)
            try:
                opened.settimeout(timeout)
                opened.connect(to)
            except OSError as error:
                opened.close()
                last_error = error
            else:
                return opened
        raise last_error

    def _read_response(self, connection: _socket.socket, unsent: OSError | None) -> HTTPResponse:
        while True:
            head = self._read_head(connection)
            lines = head.decode("latin-1").split("\r\n")
            parts = lines[0].split(" ", 2)
            if len(parts) < 2 or not parts[0].startswith("HTTP/1.") or not parts[1].isdigit():
                raise HTTPConnectionError(f"{self._host} sent a response that is not HTTP/1.1")
            status = int(parts[1])
            if status >= 200:
                break
        fields = {}
        for line in lines[1:]:
            name, _, value = line.partition(":")
            fields[name.strip().lower()] = value.strip()
        close_after = fields.get("connection", "").lower() == "close" or parts[0] == "HTTP/1.0"
        if status in (204, 304):
            body = b""
        elif "chunked" in fields.get("transfer-encoding", "").lower():
            body = self._read_chunked(connection)
        elif fields.get("content-length", "").isdigit():
            body = self._read_exactly(connection, int(fields["content-length"]))
        else:
            close_after, body = True, self._read_to_end(connection)
        if close_after or unsent is not None:
            self.close()
        return HTTPResponse(status, body)

    def _read_head(self, connection: _socket.socket) -> bytes:
        while (end := self._buffer.find(b"\r\n\r\n")) < 0:
            if len(self._buffer) > _MAX_HEAD_BYTES:
                raise HTTPConnectionError(f"{self._host} sent too long response headers")
            self._receive(connection, first=not self._buffer)
        head, self._buffer = self._buffer[:end], self._buffer[end + 4 :]
        return head

    def _receive(self, connection: _socket.socket, first: bool = False) -> None:
        try:
            data = connection.recv(65536)
        except (ConnectionResetError, BrokenPipeError) as error:
            if first:
                raise _NoResponse(f"{self._host}: {error}") from error
            raise
        if not data:
            text = f"{self._host} closed the connection"
            raise _NoResponse(text) if first else HTTPConnectionError(text)
        self._buffer += data

    def _read_exactly(self, connection: _socket.socket, size: int) -> bytes:
        if size > MAX_RESPONSE_BYTES:
            raise HTTPConnectionError(f"{self._host} sent {size} bytes, above the limit of the runner")
        while len(self._buffer) < size:
            self._receive(connection)
        body, self._buffer = self._buffer[:size], self._buffer[size:]
        return body

    def _read_line(self, connection: _socket.socket) -> bytes:
        while (end := self._buffer.find(b"\r\n")) < 0:
            if len(self._buffer) > _MAX_HEAD_BYTES:
                raise HTTPConnectionError(f"{self._host} sent too long a line")
            self._receive(connection)
        line, self._buffer = self._buffer[:end], self._buffer[end + 2 :]
        return line

    def _read_chunked(self, connection: _socket.socket) -> bytes:
        body = b""
        while True:
            try:
                size = int(self._read_line(connection).split(b";")[0], 16)
            except ValueError:
                raise HTTPConnectionError(f"{self._host} sent an invalid chunk") from None
            if not 0 <= size <= MAX_RESPONSE_BYTES - len(body):
                raise HTTPConnectionError(f"{self._host} sent a response above the limit of the runner")
            if size == 0:
                while self._read_line(connection):
                    pass
                return body
            body += self._read_exactly(connection, size)
            self._read_line(connection)

    def _read_to_end(self, connection: _socket.socket) -> bytes:
        while len(self._buffer) <= MAX_RESPONSE_BYTES:
            data = connection.recv(65536)
            if not data:
                body, self._buffer = self._buffer, b""
                return body
            self._buffer += data
        raise HTTPConnectionError(f"{self._host} sent a response above the limit of the runner")


class _NoResponse(OSError):
    """The connection ended before the first byte of a response."""
