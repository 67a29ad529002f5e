"""What a hostile git server may answer: libgit2 must not be led past the gate, nor credentials past home."""

import contextlib
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from build.settings import GitSource
from build.source.git_failure import Failed
from build.source.git_remote import fetch_commit
from egress.addresses import Rules
from egress.git.credentials import Access
from egress.git.errors import Kind
from egress.relay.http_messages import adapted, same_server

NOT_FOUND = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"


class Server:
    """Answers every request with the same bytes and keeps what was asked."""

    def __init__(self, answer: bytes) -> None:
        self.answer, self.seen = answer, list[bytes]()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                with client:
                    client.settimeout(60)
                    self.seen.append(client.recv(65536))
                    client.sendall(self.answer)

    def close(self) -> None:
        with contextlib.suppress(OSError):
            # A mere close leaves the thread accepting; then it answers in place of other servers.
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()


@pytest.fixture
def serve() -> Iterator[Callable[[bytes], Server]]:
    servers: list[Server] = []

    def make(answer: bytes) -> Server:
        servers.append(Server(answer))
        return servers[-1]

    yield make
    for server in servers:
        server.close()


@pytest.mark.parametrize(
    "before",
    [
        "Location: HTTP://",
        "Location: hTTp://",
        "Location: \x0bhttp://",
        "Location:\r\n http://",
        "X: y\nLocation: http://",
    ],
)
@pytest.mark.parametrize("first", ["", "HTTP/1.1 100 Continue\r\n\r\n"])
def test_no_spelling_of_a_redirect_leads_past_the_gate(
    serve: Callable[[bytes], Server], tmp_path: Path, first: str, before: str
) -> None:
    inner = serve(NOT_FOUND)
    redirect = f"{before}127.0.0.1:{inner.port}/x/info/refs?service=git-upload-pack"
    outer = serve(
        f"{first}HTTP/1.1 302 Found\r\n{redirect}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".encode()
    )
    url = f"http://git.example.org:{outer.port}/x"
    allowed = {"git.example.org": "127.0.0.1", "127.0.0.1": "169.254.169.254"}
    rules = Rules.parse(["127.0.0.1/32"], [])
    source = GitSource(url, "a" * 40)
    with pytest.raises(Failed):
        resolve = lambda host, port: [allowed[host]]  # noqa: E731
        fetch_commit(source, Access(bearer="word"), rules, 1 << 20, tmp_path, resolve=resolve)
    assert outer.seen
    assert not inner.seen


class Dripping(Server):
    """Sends a byte of a head that never ends, again and again."""

    def _serve(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                with client, contextlib.suppress(OSError):
                    self.seen.append(client.recv(65536))
                    client.sendall(b"HTTP/1.1 200 OK\r\nX: ")
                    while True:
                        client.sendall(b"x")
                        time.sleep(0.02)


def test_a_server_that_drips_is_left_when_the_time_is_over(tmp_path: Path) -> None:
    rules = Rules.parse(["127.0.0.1/32"], [])
    # Far below the silence that is allowed, which never comes; longer where a busy machine reached nobody.
    for seconds in (0.3, 6.0):
        server = Dripping(b"")
        source, place = GitSource(f"http://127.0.0.1:{server.port}/x", "a" * 40), tmp_path / str(seconds)
        try:
            with pytest.raises(Failed) as failed:
                fetch_commit(source, Access(), rules, 1 << 20, place, total_timeout=seconds)
        finally:
            server.close()
        if server.seen:
            break
    assert failed.value.trouble.kind is Kind.LATE and len(server.seen) == 1


@pytest.mark.parametrize(
    ("location", "seen"),
    [
        ("https://other.example.org/x", "/https/other.example.org/x"),
        ("HTTPS://other.example.org/x?a=b", "/https/other.example.org/x?a=b"),
        ("/y", "/http/git.example.org/y"),
        ("//other.example.org/x", None),
        ("ftp://other.example.org/x", None),
        ("y", None),
        ("http://[", None),
        ("", None),
    ],
)
def test_a_redirect_leads_through_the_gate_or_nowhere(location: str, seen: str | None) -> None:
    head = f"HTTP/1.1 302 Found\r\nLocation: {location}\r\nContent-Type: text/plain".encode()
    lines = adapted(head, "/http/git.example.org").decode().split("\r\n")
    assert [line for line in lines if line.lower().startswith("location")] == (
        [] if seen is None else [f"Location: {seen}"]
    )
    assert "Content-Type: text/plain" in lines


@pytest.mark.parametrize(
    ("home", "place", "same"),
    [
        ("https://git.example.org/x", ("https", "git.example.org", 443), True),
        ("https://git.example.org/x", ("https", "git.example.org", 8443), False),
        ("https://git.example.org/x", ("http", "git.example.org", 80), False),
        ("https://git.example.org:8443/x", ("https", "git.example.org", 8443), True),
        ("https://git.example.org:8443/x", ("https", "git.example.org", 443), False),
        ("http://git.example.org/x", ("https", "git.example.org", 443), True),
        ("http://git.example.org:3000/x", ("http", "git.example.org", 3000), True),
        ("http://git.example.org:3000/x", ("https", "git.example.org", 9443), False),
        ("http://git.example.org/x", ("https", "other.example.org", 443), False),
    ],
)
def test_another_port_is_another_server(home: str, place: tuple[str, str, int], same: bool) -> None:
    assert same_server(home, *place) is same
