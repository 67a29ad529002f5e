"""The key by which an ssh server is known, and hearing it in what the server sends first. Pure.

Called by egress.relay.ssh_relay, which sees the bytes, and by egress.git.known_hosts, which compares.
"""

import base64
import hashlib
import struct
from dataclasses import dataclass

_REPLIES = (31, 33)
"""Messages of a key exchange that begin with the server's host key (RFC 4253, RFC 4419, RFC 5656)."""
_LARGEST_PACKET = 64 << 10
_LARGEST_GREETING = 64 << 10


@dataclass(frozen=True)
class HostKey:
    """A public key in the form it has on the wire."""

    blob: bytes

    @property
    def kind(self) -> str:
        """Its algorithm, `ssh-ed25519` for example; empty where it says none."""
        name, _ = _string(self.blob) or (b"", b"")
        text = name.decode("ascii", "replace")
        return text if text.isprintable() and len(text) < 64 else ""

    @property
    def fingerprint(self) -> str:
        """As `ssh-keygen -l` shows it: `SHA256:…`."""
        digest = hashlib.sha256(self.blob).digest()
        return f"SHA256:{base64.b64encode(digest).decode().rstrip('=')}"


class Listener:
    """Hears the host key in the bytes from a server, in whatever pieces they come; keeps at most 128 KiB.

    `strange` is set for a server that says a lot and nothing of ssh.
    """

    def __init__(self) -> None:
        self._held = b""
        self._greeted = self._over = False
        self._heard = 0
        self.strange = False

    def hear(self, data: bytes) -> HostKey | None:
        """The host key, once, as soon as the bytes up to here hold it."""
        if self._over:
            return None
        self._held += data
        self._heard += len(data)
        if not self._greeted and not self._greeting():
            return None
        while not self._over and len(self._held) >= 6:
            size, padding, message = struct.unpack(">IBB", self._held[:6])
            if not padding + 2 <= size <= _LARGEST_PACKET:
                break
            if len(self._held) < 4 + size:
                return None
            payload, self._held = self._held[5 : 4 + size - padding], self._held[4 + size :]
            if message in _REPLIES:
                self._end()
                found = _string(payload[1:])
                return HostKey(found[0]) if found else None
        else:
            return None
        self._end()
        return None

    def _greeting(self) -> bool:
        """Drops the lines up to the one with the version; False while it has not come."""
        while b"\n" in self._held:
            line, _, self._held = self._held.partition(b"\n")
            if line.startswith(b"SSH-"):
                self._greeted = True
                return True
        # Counted from the first byte: lines are dropped as they end, but there may be any number of them.
        if self._heard > _LARGEST_GREETING:
            self.strange = True
            self._end()
        return False

    def _end(self) -> None:
        self._over, self._held = True, b""


def _string(data: bytes) -> tuple[bytes, bytes] | None:
    """The string at the beginning of `data`, and the rest; None where there is none."""
    if len(data) < 4:
        return None
    (size,) = struct.unpack(">I", data[:4])
    return (data[4 : 4 + size], data[4 + size :]) if 0 < size <= len(data) - 4 else None
