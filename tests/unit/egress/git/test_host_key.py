"""Hearing the host key in what an ssh server sends first, in whatever pieces."""

import struct

from hypothesis import given
from hypothesis import strategies as st

from egress.git.host_key import HostKey, Listener

BLOB = struct.pack(">I", 11) + b"ssh-ed25519" + struct.pack(">I", 32) + bytes(32)


def packet(message: int, body: bytes) -> bytes:
    payload = bytes([message]) + body
    padding = 8 + (-(len(payload) + 5)) % 8
    return struct.pack(">IB", len(payload) + padding + 1, padding) + payload + bytes(padding)


GREETING = b"a line before\r\nSSH-2.0-Server\r\n"
BEGIN = GREETING + packet(20, bytes(300)) + packet(31, struct.pack(">I", len(BLOB)) + BLOB + bytes(80))


def heard(data: bytes, sizes: list[int]) -> list[HostKey]:
    listener, found = Listener(), []
    while data:
        size = sizes.pop(0) if sizes else 7
        found.append(listener.hear(data[:size]))
        data = data[size:]
    return [key for key in found if key]


@given(st.lists(st.integers(1, 400)))
def test_it_is_heard_once_in_whatever_pieces(sizes):
    assert heard(BEGIN + bytes(500), sizes) == [HostKey(BLOB)]


@given(st.binary(max_size=300), st.booleans())
def test_noise_is_no_key_and_ends_the_listening(noise, greeted):
    heard((GREETING if greeted else b"") + noise, [])


def test_what_is_kept_is_bounded():
    listener = Listener()
    for _ in range(100):
        assert listener.hear(bytes(64 << 10)) is None
    assert len(listener._held) <= 128 << 10 and listener.strange
    listener = Listener()
    listener.hear(GREETING + struct.pack(">IB", 1 << 30, 8))
    assert listener.hear(bytes(1 << 20)) is None and listener._held == b""


def test_a_key_that_says_no_kind_has_none():
    assert HostKey(b"").kind == "" and HostKey(b"\0\0\0\x05ab").kind == ""
    assert HostKey(b"\0\0\0\x02\x1b[" + bytes(4)).kind == ""
    assert HostKey(BLOB).kind == "ssh-ed25519"
