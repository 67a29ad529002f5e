"""Slow servers: timeouts bound connecting, idling and the whole fetch, over http and ssh."""

import socket
import time
from pathlib import Path

import pytest

from build.settings import GitSource
from build.source.git_failure import GitFetchFailed
from build.source.git_remote import fetch_commit
from egress.addresses import AddressRules
from egress.git.credentials import GitCredentials
from egress.git.errors import GitErrorKind
from tests.testbed.listeners import Listener, Treatment, listening, unresponsive_port

HERE = AddressRules.parse(["127.0.0.1/32"], [])
SHORT_SECONDS = 0.3
NEVER_SECONDS = 120.0
"""Longer than the tests may take."""


def failure_kind(scheme: str, port: int, place: Path, **limits: float) -> GitErrorKind:
    defaults = {
        "connect_timeout": NEVER_SECONDS,
        "idle_timeout": NEVER_SECONDS,
        "total_timeout": NEVER_SECONDS,
    }
    source = GitSource(f"{scheme}://127.0.0.1:{port}/x.git", "a" * 40)
    with pytest.raises(GitFetchFailed) as failed:
        fetch_commit(source, GitCredentials(identity="x"), HERE, 1 << 20, place, **{**defaults, **limits})
    return failed.value.failure.kind


def visited(server: Listener) -> int:
    """Return the number of connections once there is one."""
    end = time.monotonic() + 60
    while not server.visits and time.monotonic() < end:
        time.sleep(0.01)
    return server.visits


def drip(first: bytes, drop: bytes) -> Treatment:
    """Send `first`, then `drop` again and again without end."""

    def treat(visitor: socket.socket) -> None:
        visitor.recv(65536)
        visitor.sendall(first)
        while True:
            visitor.sendall(drop)
            time.sleep(0.02)

    return treat


def silence(first: bytes) -> Treatment:
    """Send `first`, then nothing until the client disconnects."""

    def treat(visitor: socket.socket) -> None:
        visitor.sendall(first)
        visitor.settimeout(NEVER_SECONDS)
        while visitor.recv(65536):
            pass

    return treat


HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/x-git-upload-pack-advertisement\r\n"
LONG = HEAD + b"Content-Length: 1000000\r\n\r\n"
CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"


@pytest.mark.parametrize("scheme", ["http", "https", "ssh"])
def test_connect_timeout(tmp_path, scheme):
    with unresponsive_port() as port:
        assert failure_kind(scheme, port, tmp_path, connect_timeout=SHORT_SECONDS) is GitErrorKind.UNAVAILABLE


@pytest.mark.parametrize("scheme", ["http", "https", "ssh"])
def test_total_timeout_bounds_connecting(tmp_path, scheme):
    with unresponsive_port() as port:
        assert failure_kind(scheme, port, tmp_path, total_timeout=SHORT_SECONDS) is GitErrorKind.TIMEOUT


@pytest.mark.parametrize(
    ("scheme", "first"),
    [
        ("http", b""),
        ("http", b"HTTP/1.1 200 OK\r\nX: "),
        ("http", LONG + b"001e# service=git-upload-pack\n"),
        ("http", CHUNKED + b"1e\r\n001e# service=git-upload-pack\n\r\n"),
        ("https", b""),
        ("https", b"\x16\x03\x03\x00\x7a\x02"),
        ("ssh", b""),
        ("ssh", b"SSH-2.0-"),
        ("ssh", b"SSH-2.0-Server\r\n"),
        ("ssh", b"SSH-2.0-Server\r\n\x00\x00\x01\x00\x06\x14"),
    ],
)
def test_idle_timeout(tmp_path, scheme, first):
    with listening(treatment=silence(first)) as server:
        assert (
            failure_kind(scheme, server.port, tmp_path, idle_timeout=SHORT_SECONDS)
            is GitErrorKind.UNAVAILABLE
        )
        # On a busy machine the idle time may be over before the thread of the server accepts.
        assert visited(server) == 1


@pytest.mark.parametrize(
    ("scheme", "first", "drop", "kind"),
    [
        ("http", b"HTTP/1.1 200 OK\r\nX: ", b"x", GitErrorKind.TIMEOUT),
        ("http", b"", b"HTTP/1.1 100 Continue\r\n\r\n", GitErrorKind.TIMEOUT),
        # What comes is no pkt-line, and no TLS record: refused before the time is over.
        ("http", LONG, b"0", GitErrorKind.UNAVAILABLE),
        ("http", CHUNKED, b"1\r\n0\r\n", GitErrorKind.UNAVAILABLE),
        ("https", b"", b"\x16", GitErrorKind.UNAVAILABLE),
        ("ssh", b"", b"a line without meaning\r\n", GitErrorKind.TIMEOUT),
        ("ssh", b"SSH-2.0-Server\r\n\x00\x00\x80\x00\x06\x14", b"x", GitErrorKind.TIMEOUT),
    ],
)
def test_total_timeout_ends_a_drip(tmp_path, scheme, first, drop, kind):
    for seconds in (SHORT_SECONDS, 20 * SHORT_SECONDS, NEVER_SECONDS):
        with listening(treatment=drip(first, drop)) as server:
            found = failure_kind(scheme, server.port, tmp_path / str(seconds), total_timeout=seconds)
        if server.visits and (found is kind or kind is GitErrorKind.TIMEOUT):
            break
        # On a busy machine the deadline may expire before the connection is accepted, or the data comes.
    assert (found, server.visits) == (kind, 1)


@pytest.mark.parametrize(
    ("scheme", "first"),
    [("http", HEAD + b"\r\n"), ("http", b"HTTP/1.1 200 OK\r\n"), ("ssh", b""), ("https", b"")],
)
def test_byte_limit_ends_a_flood(tmp_path, scheme, first):
    with listening(treatment=drip(first, b"x" * 65536 * 16)) as server:
        assert failure_kind(scheme, server.port, tmp_path) is GitErrorKind.UNAVAILABLE
        assert server.visits == 1
