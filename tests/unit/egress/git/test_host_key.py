"""Extraction of the host key from the first bytes of an ssh server, split in any way."""

import struct

from hypothesis import given
from hypothesis import strategies as st

from egress.git.host_key import HostKey, HostKeyReader

BLOB = struct.pack(">I", 11) + b"ssh-ed25519" + struct.pack(">I", 32) + bytes(32)


def packet(message: int, body: bytes) -> bytes:
    payload = bytes([message]) + body
    padding = 8 + (-(len(payload) + 5)) % 8
    return struct.pack(">IB", len(payload) + padding + 1, padding) + payload + bytes(padding)


def string(data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + data


VERSION_LINES = b"a line before\r\nSSH-2.0-Server\r\n"
REPLY = string(BLOB) + bytes(80)
KEY_EXCHANGE = VERSION_LINES + packet(20, bytes(300)) + packet(31, REPLY)
GROUP = string(b"\0" + b"\xff" * 256) + string(b"\2")
GROUP_EXCHANGE = VERSION_LINES + packet(20, bytes(300)) + packet(31, GROUP) + packet(33, REPLY)


def read_keys(data: bytes, sizes: list[int]) -> list[HostKey]:
    reader, keys = HostKeyReader(), []
    while data:
        size = sizes.pop(0) if sizes else 7
        keys.append(reader.feed(data[:size]))
        data = data[size:]
    return [key for key in keys if key]


@given(st.lists(st.integers(1, 400)))
def test_key_is_returned_once(sizes):
    assert read_keys(KEY_EXCHANGE + bytes(500), sizes) == [HostKey(BLOB)]


@given(st.lists(st.integers(1, 400)))
def test_group_is_not_taken_for_the_key(sizes):
    assert read_keys(GROUP_EXCHANGE + bytes(500), sizes) == [HostKey(BLOB)]


@given(st.binary(max_size=300), st.booleans())
def test_noise_is_accepted(noise, with_version):
    read_keys((VERSION_LINES if with_version else b"") + noise, [])


def test_buffer_is_bounded():
    reader = HostKeyReader()
    for _ in range(100):
        assert reader.feed(bytes(64 << 10)) is None
    assert len(reader._buffer) <= 128 << 10 and reader.not_ssh
    reader = HostKeyReader()
    reader.feed(VERSION_LINES + struct.pack(">IB", 1 << 30, 8))
    assert reader.feed(bytes(1 << 20)) is None and reader._buffer == b""


def test_algorithm_of_a_malformed_key_is_empty():
    assert HostKey(b"").algorithm == "" and HostKey(b"\0\0\0\x05ab").algorithm == ""
    assert HostKey(b"\0\0\0\x02\x1b[" + bytes(4)).algorithm == ""
    assert HostKey(BLOB).algorithm == "ssh-ed25519"
