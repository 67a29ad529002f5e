"""Hostile git servers: libgit2 must not bypass the relay, nor send credentials to another server."""

import contextlib
import os
import resource
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from build.settings import GitSource
from build.source.git_failure import GitFetchFailed
from build.source.git_remote import fetch_commit
from egress.addresses import AddressRules
from egress.git.credentials import GitCredentials
from egress.git.errors import GitErrorKind
from egress.relay.http_messages import rewrite_response_head, same_server
from egress.relay.http_relay import HttpRelay
from egress.relay.ssh_relay import SshRelay
from tests.testbed.certificates import Certificate, certificate

NOT_FOUND = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"


class FixedServer:
    """Server that answers every request with the same bytes and records the requests."""

    def __init__(self, answer: bytes) -> None:
        self.answer, self.requests = answer, list[bytes]()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                with client:
                    client.settimeout(60)
                    self.requests.append(client.recv(65536))
                    client.sendall(self.answer)

    def close(self) -> None:
        with contextlib.suppress(OSError):
            # close alone leaves the thread accepting on a descriptor that other servers may reuse.
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()


@pytest.fixture
def serve() -> Iterator[Callable[[bytes], FixedServer]]:
    servers: list[FixedServer] = []

    def make(answer: bytes) -> FixedServer:
        servers.append(FixedServer(answer))
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
def test_no_spelling_of_a_redirect_bypasses_the_relay(
    serve: Callable[[bytes], FixedServer], tmp_path: Path, first: str, before: str
) -> None:
    inner = serve(NOT_FOUND)
    redirect = f"{before}127.0.0.1:{inner.port}/x/info/refs?service=git-upload-pack"
    outer = serve(
        f"{first}HTTP/1.1 302 Found\r\n{redirect}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".encode()
    )
    url = f"http://git.example.org:{outer.port}/x"
    allowed = {"git.example.org": "127.0.0.1", "127.0.0.1": "169.254.169.254"}
    rules = AddressRules.parse(["127.0.0.1/32"], [])
    source = GitSource(url, "a" * 40)
    with pytest.raises(GitFetchFailed):
        resolve = lambda host, port: [allowed[host]]  # noqa: E731
        fetch_commit(source, GitCredentials(bearer="word"), rules, 1 << 20, tmp_path, resolve=resolve)
    assert outer.requests
    assert not inner.requests


class DrippingServer(FixedServer):
    """Server that sends an endless response head one byte at a time."""

    def _serve(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                with client, contextlib.suppress(OSError):
                    self.requests.append(client.recv(65536))
                    client.sendall(b"HTTP/1.1 200 OK\r\nX: ")
                    while True:
                        client.sendall(b"x")
                        time.sleep(0.02)


def test_deadline_ends_a_dripping_server(tmp_path: Path) -> None:
    rules = AddressRules.parse(["127.0.0.1/32"], [])
    # Far below the idle timeout, which never fires; the longer try is for a busy machine.
    for seconds in (0.3, 6.0, 20.0):
        server = DrippingServer(b"")
        source, directory = GitSource(f"http://127.0.0.1:{server.port}/x", "a" * 40), tmp_path / str(seconds)
        try:
            with pytest.raises(GitFetchFailed) as failed:
                fetch_commit(source, GitCredentials(), rules, 1 << 20, directory, total_timeout=seconds)
        finally:
            server.close()
        if server.requests:
            break
    assert failed.value.failure.kind is GitErrorKind.TIMEOUT and len(server.requests) == 1


class TlsServer(FixedServer):
    """TLS server that reads a head, then a body, and answers with both.

    Its session tickets arrive before any other data, as with every TLS 1.3 server.
    """

    def __init__(self, pair: Certificate, directory: Path) -> None:
        both = directory / "both.pem"
        both.write_text(pair.key + pair.text)
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.load_cert_chain(both)
        self.read_head = threading.Event()
        super().__init__(b"")

    def _serve(self) -> None:
        with contextlib.suppress(OSError):
            client, _ = self._listener.accept()
            client.settimeout(60)
            with self._context.wrap_socket(client, server_side=True) as tls:
                head = tls.recv(65536)
                self.read_head.set()
                tls.sendall(b"HTTP/1.1 200 OK\r\n\r\n" + head[:4] + b" " + tls.recv(65536))


def test_a_session_ticket_does_not_stop_the_request_body(tmp_path: Path) -> None:
    pair = certificate("localhost")
    server = TlsServer(pair, tmp_path)
    relay = HttpRelay(AddressRules.parse(["127.0.0.0/8", "::1/128"], []), ca=pair.text, idle_timeout=30)
    try:
        with relay:
            port = urlsplit(relay.local_url(f"https://localhost:{server.port}/x")).port
            with socket.create_connection(("127.0.0.1", port), 60) as client:
                head = f"POST /https/localhost:{server.port}/x HTTP/1.1\r\nContent-Length: 4\r\n\r\n"
                client.sendall(head.encode())
                # By now the relay has received the tickets, and waits for either side.
                assert server.read_head.wait(30)
                client.sendall(b"body")
                assert client.makefile("rb").read().endswith(b"\r\n\r\nPOST body")
    finally:
        server.close()


@pytest.fixture
def many_descriptors() -> Iterator[None]:
    """Hold so many descriptors that those of a relay have numbers above 1024."""
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(4096, limits[1]), limits[1]))
    with contextlib.ExitStack() as held:
        for _ in range(1024):
            held.callback(os.close, os.open(os.devnull, os.O_RDONLY))
        yield
    resource.setrlimit(resource.RLIMIT_NOFILE, limits)


@pytest.mark.usefixtures("many_descriptors")
def test_a_process_with_many_connections_reaches_servers(serve: Callable[[bytes], FixedServer]) -> None:
    rules = AddressRules.parse(["127.0.0.1/32"], [])
    for scheme, make_relay in (("http", HttpRelay), ("ssh", SshRelay)):
        server = serve(b"SSH-2.0-x\r\n" if scheme == "ssh" else NOT_FOUND)
        url = f"{scheme}://127.0.0.1:{server.port}/x"
        with make_relay(rules, repository_url=url) as relay:
            port = urlsplit(relay.local_url(url)).port
            with socket.create_connection(("127.0.0.1", port), 60) as client:
                client.sendall(f"GET /http/127.0.0.1:{server.port}/x HTTP/1.1\r\n\r\n".encode())
                assert client.recv(65536)[:4] == server.answer[:4]


@pytest.mark.parametrize(
    ("location", "rewritten"),
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
def test_redirect_is_rewritten_or_dropped(location: str, rewritten: str | None) -> None:
    head = f"HTTP/1.1 302 Found\r\nLocation: {location}\r\nContent-Type: text/plain".encode()
    lines = rewrite_response_head(head, "/http/git.example.org").decode().split("\r\n")
    assert [line for line in lines if line.lower().startswith("location")] == (
        [] if rewritten is None else [f"Location: {rewritten}"]
    )
    assert "Content-Type: text/plain" in lines


@pytest.mark.parametrize(
    ("home", "server", "same"),
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
def test_same_server(home: str, server: tuple[str, str, int], same: bool) -> None:
    assert same_server(home, *server) is same
