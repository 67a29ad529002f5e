"""What every way out has: checked addresses, counted bytes, a time. Called by egress.relay.http_relay and .tunnel."""

import socket
import threading
from abc import ABC, abstractmethod
from typing import Self

from egress.addresses import AddressRefused, Resolver, Rules, checked, system_resolver
from egress.git.host_key import HostKey
from egress.relay.deadline import Deadline

_ADDRESSES = 8
"""Of one name, tried one after the other."""


class Way(ABC):
    """A context manager; connections lead out while it is open.

    `refusals` is what was turned away, `unknown` are hosts that have no address at all, `untrusted` those
    that could not prove who they are; `shown` is the host key that an ssh server showed last. At most `most`
    bytes come in through all connections together, then `exceeded` is set and all of them end. Connecting
    and idling are bounded by `connect_timeout` and `idle_timeout`, in seconds; `total_timeout` seconds after
    the beginning every connection ends, however much it still drips, and `deadline.over` is set.
    """

    def __init__(
        self,
        rules: Rules,
        resolve: Resolver = system_resolver,
        connect_timeout: float = 10.0,
        idle_timeout: float = 60.0,
        total_timeout: float = 900.0,
        most: int = 1 << 30,
    ) -> None:
        self.rules, self.resolve = rules, resolve
        self.connect_timeout, self.idle_timeout = connect_timeout, idle_timeout
        self.deadline = Deadline(total_timeout)
        self.exceeded = False
        self.refusals: list[str] = []
        self.unknown: list[str] = []
        self.untrusted: list[str] = []
        self.shown: HostKey | None = None
        self._left, self._lock = most, threading.Lock()

    @abstractmethod
    def address(self, url: str) -> str:
        """What to ask for in place of `url`, so that the way leads through here."""

    @abstractmethod
    def open(self) -> None:
        """Connections are taken from now on."""

    @abstractmethod
    def close(self) -> None:
        """And no more."""

    def __enter__(self) -> Self:
        self.open()
        self.deadline.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.deadline.stop()
        self.close()

    def take(self, count: int) -> bool:
        """Counts bytes that came in; False once they are too many."""
        with self._lock:
            self._left -= count
            self.exceeded = self._left < 0
            return not self.exceeded

    def connect(self, host: str, port: int) -> socket.socket:
        """A connection to a checked address of `host`, within the time. Raises AddressRefused or OSError."""
        try:
            addresses = checked(host, port, self.rules, self.resolve)
        except AddressRefused as error:
            self.refusals.append(str(error))
            raise
        except UnicodeError:
            # A label of no letters, or of more than 63.
            self.unknown.append(host)
            raise OSError(f"{host} is no name of a host") from None
        except socket.gaierror as error:
            if error.errno in (socket.EAI_NONAME, getattr(socket, "EAI_NODATA", socket.EAI_NONAME)):
                self.unknown.append(host)
            raise
        last: OSError = OSError(f"{host} has no address")
        for address in addresses[:_ADDRESSES]:
            try:
                stream = socket.create_connection((address, port), self._patience())
            except OSError as error:
                last = error
                continue
            try:
                self.deadline.admit(stream)
            except OSError:
                stream.close()
                raise
            stream.settimeout(self.idle_timeout)
            return stream
        raise last

    def _patience(self) -> float:
        """Seconds that one attempt to connect may take. Raises TimeoutError where there are none left."""
        left = self.deadline.left()
        if left <= 0:
            raise TimeoutError("the time of this way out is over")
        return min(self.connect_timeout, left)
