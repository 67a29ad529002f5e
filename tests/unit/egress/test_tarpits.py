"""Servers that take their time: connecting, silence and the whole each have an end, by http and by ssh."""

import socket
import time
from pathlib import Path

import pytest

from build.settings import GitSource
from build.source.git_failure import Failed
from build.source.git_remote import fetch_commit
from egress.addresses import Rules
from egress.git.credentials import Access
from egress.git.errors import Kind
from tests.testbed.listeners import Treatment, deaf, listening

HERE = Rules.parse(["127.0.0.1/32"], [])
SOON = 0.3
LATER = 120.0
"""Longer than the tests may take: what ends by it, hangs."""


def trouble(scheme: str, port: int, place: Path, **limits: float) -> Kind:
    usual = {"connect_timeout": LATER, "idle_timeout": LATER, "total_timeout": LATER}
    source = GitSource(f"{scheme}://127.0.0.1:{port}/x.git", "a" * 40)
    with pytest.raises(Failed) as failed:
        fetch_commit(source, Access(identity="x"), HERE, 1 << 20, place, **{**usual, **limits})
    return failed.value.trouble.kind


def drip(first: bytes, drop: bytes) -> Treatment:
    """Sends `first`, then a little at a time, for ever."""

    def treat(visitor: socket.socket) -> None:
        visitor.recv(65536)
        visitor.sendall(first)
        while True:
            visitor.sendall(drop)
            time.sleep(0.02)

    return treat


def silence(first: bytes) -> Treatment:
    """Sends `first`, then nothing until the visitor goes."""

    def treat(visitor: socket.socket) -> None:
        visitor.sendall(first)
        visitor.settimeout(LATER)
        while visitor.recv(65536):
            pass

    return treat


HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/x-git-upload-pack-advertisement\r\n"
LONG = HEAD + b"Content-Length: 1000000\r\n\r\n"
CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"


@pytest.mark.parametrize("scheme", ["http", "https", "ssh"])
def test_nobody_takes_the_connection(tmp_path, scheme):
    with deaf() as port:
        assert trouble(scheme, port, tmp_path, connect_timeout=SOON) is Kind.AWAY


@pytest.mark.parametrize("scheme", ["http", "https", "ssh"])
def test_the_time_in_all_bounds_connecting_too(tmp_path, scheme):
    with deaf() as port:
        assert trouble(scheme, port, tmp_path, total_timeout=SOON) is Kind.LATE


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
def test_silence_ends(tmp_path, scheme, first):
    with listening(treatment=silence(first)) as server:
        assert trouble(scheme, server.port, tmp_path, idle_timeout=SOON) is Kind.AWAY
        assert server.visits == 1


@pytest.mark.parametrize(
    ("scheme", "first", "drop"),
    [
        ("http", b"HTTP/1.1 200 OK\r\nX: ", b"x"),
        ("http", b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
        ("http", LONG, b"0"),
        ("http", CHUNKED, b"1\r\n0\r\n"),
        ("https", b"", b"\x16"),
        ("ssh", b"", b"a line of no meaning\r\n"),
        ("ssh", b"SSH-2.0-Server\r\n\x00\x00\x80\x00\x06\x14", b"x"),
    ],
)
def test_a_drip_ends_with_the_time_in_all(tmp_path, scheme, first, drop):
    for seconds in (SOON, 20 * SOON):
        with listening(treatment=drip(first, drop)) as server:
            kind = trouble(scheme, server.port, tmp_path / str(seconds), total_timeout=seconds)
        if server.visits:
            break
        # On a busy machine the time may be over before anybody is reached.
    assert kind in (Kind.LATE, Kind.AWAY, Kind.NO_GIT)
    assert server.visits == 1


@pytest.mark.parametrize(
    ("scheme", "first"),
    [("http", HEAD + b"\r\n"), ("http", b"HTTP/1.1 200 OK\r\n"), ("ssh", b""), ("https", b"")],
)
def test_a_flood_ends_with_the_bytes(tmp_path, scheme, first):
    with listening(treatment=drip(first, b"x" * 65536 * 16)) as server:
        kind = trouble(scheme, server.port, tmp_path)
        assert kind in (Kind.TOO_LARGE, Kind.AWAY, Kind.NO_GIT, Kind.REPOSITORY)
        assert server.visits == 1
