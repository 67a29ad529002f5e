"""The HTTP connection against servers that follow and violate HTTP/1.1."""

from __future__ import annotations

import socket
import threading

import pytest

from runner.pid1.api.http import HTTPConnectionError, KeepAliveConnection

CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


def serve(responses: list[bytes]) -> str:
    """Start a server that sends these bytes, one response per connection; return its URL."""
    listener = socket.create_server(("127.0.0.1", 0))

    def run() -> None:
        with listener:
            for response in responses:
                connection, _ = listener.accept()
                with connection:
                    connection.settimeout(60)
                    connection.recv(65536)
                    connection.sendall(response)

    threading.Thread(target=run, daemon=True).start()
    return f"http://127.0.0.1:{listener.getsockname()[1]}"


@pytest.mark.parametrize(
    ("response", "expected"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi", (200, b"hi")),
        (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 204 No\r\n\r\n", (204, b"")),
        (CHUNKED + b"2\r\nhi\r\n3;x=y\r\n ho\r\n0\r\n\r\n", (200, b"hi ho")),
        (b"HTTP/1.0 503 Away\r\n\r\nbody until the end", (503, b"body until the end")),
    ],
)
def test_responses_of_every_form(response: bytes, expected: tuple[int, bytes]) -> None:
    parsed = KeepAliveConnection(serve([response])).call("POST", "/", {}, b"{}", 2, 60.0)
    assert (parsed.status, parsed.body) == expected


@pytest.mark.parametrize(
    "response",
    [
        b"",
        b"SSH-2.0-x\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhi",
        b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n",
        CHUNKED + b"zz\r\n",
        b"x" * 200_000,
    ],
)
def test_incomplete_and_invalid_responses_are_errors(response: bytes) -> None:
    with pytest.raises(HTTPConnectionError):
        KeepAliveConnection(serve([response])).call("POST", "/", {}, b"{}", 2, 60.0)


def test_a_closed_keep_alive_connection_is_reopened() -> None:
    response = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
    connection = KeepAliveConnection(serve([response, response]))
    assert [connection.call("POST", "/", {}, b"{}", 2, 60.0).status for _ in range(2)] == [200, 200]


def test_abort_ends_the_call_of_another_thread_and_later_ones() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        connection = KeepAliveConnection(f"http://127.0.0.1:{listener.getsockname()[1]}")

        def abort() -> None:
            with listener.accept()[0] as accepted:
                accepted.recv(65536)
                connection.abort()

        thread = threading.Thread(target=abort)
        thread.start()
        for _ in range(2):
            with pytest.raises(HTTPConnectionError):
                connection.call("POST", "/", {}, b"{}", 2, 60.0)
            thread.join()


@pytest.mark.parametrize("url", ["ftp://x", "http://", "x"])
def test_an_invalid_url_is_rejected(url: str) -> None:
    with pytest.raises(ValueError, match="CREWYARD_INTERNAL_URL"):
        KeepAliveConnection(url)
