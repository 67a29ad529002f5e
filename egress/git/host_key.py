"""SSH host keys, and a parser that extracts the host key from a server's key exchange. Pure.

Called by egress.relay.ssh_relay, which relays the bytes, and by egress.git.known_hosts, which compares keys.
"""

import base64
import hashlib
import struct
from dataclasses import dataclass

_KEY_EXCHANGE_REPLIES = (31, 33)
"""Key exchange messages that start with the server's host key (RFC 4253, RFC 4419, RFC 5656).

In a group exchange, 31 starts with a prime number, and the key follows in 33.
"""
_MAX_PACKET_BYTES = 64 << 10
_MAX_GREETING_BYTES = 64 << 10


@dataclass(frozen=True)
class HostKey:
    """A public key in wire format."""

    blob: bytes

    @property
    def algorithm(self) -> str:
        """The key's algorithm, for example `ssh-ed25519`; empty where the blob names none."""
        name, _ = _read_string(self.blob) or (b"", b"")
        text = name.decode("ascii", "replace")
        return text if text.isprintable() and len(text) < 64 else ""

    @property
    def fingerprint(self) -> str:
        """The fingerprint as `ssh-keygen -l` prints it: `SHA256:…`."""
        digest = hashlib.sha256(self.blob).digest()
        return f"SHA256:{base64.b64encode(digest).decode().rstrip('=')}"


class HostKeyReader:
    """Extract the host key from a server's bytes, split in any way; buffers at most 128 KiB.

    `not_ssh` is set for a server that sends more than 64 KiB without an SSH version line.
    """

    def __init__(self) -> None:
        self._buffer = b""
        self._version_seen = self._done = False
        self._received = 0
        self.not_ssh = False

    def feed(self, data: bytes) -> HostKey | None:
        """Return the host key once, as soon as the bytes so far contain it."""
        if self._done:
            return None
        self._buffer += data
        self._received += len(data)
        if not self._version_seen and not self._skip_to_version():
            return None
        while not self._done and len(self._buffer) >= 6:
            size, padding, message = struct.unpack(">IBB", self._buffer[:6])
            if not padding + 2 <= size <= _MAX_PACKET_BYTES:
                break
            if len(self._buffer) < 4 + size:
                return None
            payload, self._buffer = self._buffer[5 : 4 + size - padding], self._buffer[4 + size :]
            if message in _KEY_EXCHANGE_REPLIES:
                key_string = _read_string(payload[1:])
                key = HostKey(key_string[0]) if key_string else None
                if message == 31 and not (key and key.algorithm):
                    continue
                self._finish()
                return key
        else:
            return None
        self._finish()
        return None

    def _skip_to_version(self) -> bool:
        """Drop the lines up to the SSH version; return False until it has arrived."""
        while b"\n" in self._buffer:
            line, _, self._buffer = self._buffer.partition(b"\n")
            if line.startswith(b"SSH-"):
                self._version_seen = True
                return True
        # Counts all bytes received, because complete lines are dropped and their number is unbounded.
        if self._received > _MAX_GREETING_BYTES:
            self.not_ssh = True
            self._finish()
        return False

    def _finish(self) -> None:
        self._done, self._buffer = True, b""


def _read_string(data: bytes) -> tuple[bytes, bytes] | None:
    """Return the SSH string at the start of `data` and the remaining bytes; None where it is incomplete."""
    if len(data) < 4:
        return None
    (size,) = struct.unpack(">I", data[:4])
    return (data[4 : 4 + size], data[4 + size :]) if 0 < size <= len(data) - 4 else None
