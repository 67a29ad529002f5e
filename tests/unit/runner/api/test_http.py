"""The connection to the facade against servers that do what HTTP/1.1 allows, and what it does not."""

from __future__ import annotations

import socket
import threading

import pytest

from runner.pid1.api.http import Wire, WireError

CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


def serve(answers: list[bytes]) -> str:
    """A server that gives these bytes, one answer a connection, then closes it."""
    listener = socket.create_server(("127.0.0.1", 0))

    def run() -> None:
        with listener:
            for answer in answers:
                connection, _ = listener.accept()
                with connection:
                    connection.settimeout(60)
                    connection.recv(65536)
                    connection.sendall(answer)

    threading.Thread(target=run, daemon=True).start()
    return f"http://127.0.0.1:{listener.getsockname()[1]}"


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi", (200, b"hi")),
        (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 204 No\r\n\r\n", (204, b"")),
        (CHUNKED + b"2\r\nhi\r\n3;x=y\r\n ho\r\n0\r\n\r\n", (200, b"hi ho")),
        (b"HTTP/1.0 503 Away\r\n\r\nbody until the end", (503, b"body until the end")),
    ],
)
def test_answers_of_every_shape(answer: bytes, expected: tuple[int, bytes]) -> None:
    said = Wire(serve([answer])).call("POST", "/", {}, b"{}", 2, 60.0)
    assert (said.status, said.body) == expected


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"SSH-2.0-x\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhi",
        b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n",
        CHUNKED + b"zz\r\n",
        b"x" * 200_000,
    ],
)
def test_half_and_broken_answers_are_errors(answer: bytes) -> None:
    with pytest.raises(WireError):
        Wire(serve([answer])).call("POST", "/", {}, b"{}", 2, 60.0)


def test_a_kept_connection_that_was_closed_is_made_anew() -> None:
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
    wire = Wire(serve([answer, answer]))
    assert [wire.call("POST", "/", {}, b"{}", 2, 60.0).status for _ in range(2)] == [200, 200]


@pytest.mark.parametrize("url", ["ftp://x", "http://", "x"])
def test_an_address_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match="CREWYARD_INTERNAL_URL"):
        Wire(url)
