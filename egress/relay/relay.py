"""Base of the relays: checked addresses, a byte limit, a deadline. Called by http_relay and ssh_relay."""

import select
import socket
import ssl
import threading
from abc import ABC, abstractmethod
from typing import Self

from egress.addresses import AddressRefused, AddressRules, Resolver, resolve_allowed, system_resolver
from egress.git.host_key import HostKey
from egress.relay.deadline import RelayDeadline

_MAX_ADDRESSES_TRIED = 8
"""Addresses of one name, tried in order."""


class EgressRelay(ABC):
    """Context manager that relays connections while it is open.

    `refused_addresses` are the refusals, `unresolved_hosts` the hosts without address, `certificate_errors`
    the servers without a valid certificate; `host_key` is the key that an ssh server presented last. All
    connections together receive at most `max_bytes`; then `size_exceeded` is set and all of them end.
    `connect_timeout` and `idle_timeout` (seconds) bound connecting and idling; `total_timeout` seconds after
    the start every connection ends, active or not, and `deadline.expired` is set.
    """

    def __init__(
        self,
        rules: AddressRules,
        resolve: Resolver = system_resolver,
        connect_timeout: float = 10.0,
        idle_timeout: float = 60.0,
        total_timeout: float = 900.0,
        max_bytes: int = 1 << 30,
    ) -> None:
        self.rules, self.resolve = rules, resolve
        self.connect_timeout, self.idle_timeout = connect_timeout, idle_timeout
        self.deadline = RelayDeadline(total_timeout)
        self.size_exceeded = False
        self.refused_addresses: list[str] = []
        self.unresolved_hosts: list[str] = []
        self.certificate_errors: list[str] = []
        self.host_key: HostKey | None = None
        self._bytes_left, self._lock = max_bytes, threading.Lock()

    @abstractmethod
    def local_url(self, url: str) -> str:
        """Return the loopback URL that stands for `url`."""

    @abstractmethod
    def open(self) -> None:
        """Start accepting connections."""

    @abstractmethod
    def close(self) -> None:
        """Stop accepting connections."""

    def __enter__(self) -> Self:
        self.open()
        self.deadline.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.deadline.stop()
        self.close()

    def count_received(self, count: int) -> bool:
        """Count received bytes; return False once the limit is exceeded."""
        with self._lock:
            self._bytes_left -= count
            self.size_exceeded = self._bytes_left < 0
            return not self.size_exceeded

    def readable(self, *sockets: socket.socket) -> list[socket.socket]:
        """Wait and return the sockets with data, also in the TLS buffer; none after `idle_timeout`."""
        buffered: list[socket.socket] = [
            side for side in sockets if isinstance(side, ssl.SSLSocket) and side.pending()
        ]
        if buffered:
            return buffered
        # Not select, which refuses descriptors from 1024 on: a controller may have more connections.
        by_descriptor = {side.fileno(): side for side in sockets}
        poll = select.poll()
        for descriptor in by_descriptor:
            poll.register(descriptor, select.POLLIN)
        return [by_descriptor[descriptor] for descriptor, _ in poll.poll(self.idle_timeout * 1000)]

    def connect(self, host: str, port: int) -> socket.socket:
        """Connect to a checked address of `host` before the deadline. Raises AddressRefused or OSError."""
        try:
            addresses = resolve_allowed(host, port, self.rules, self.resolve)
        except AddressRefused as error:
            self.refused_addresses.append(str(error))
            raise
        except UnicodeError:
            # A label is empty or longer than 63 characters.
            self.unresolved_hosts.append(host)
            raise OSError(f"{host} is not a valid host name") from None
        except socket.gaierror as error:
            if error.errno in (socket.EAI_NONAME, getattr(socket, "EAI_NODATA", socket.EAI_NONAME)):
                self.unresolved_hosts.append(host)
            raise
        last_error: OSError = OSError(f"{host} has no address")
        for address in addresses[:_MAX_ADDRESSES_TRIED]:
            try:
                stream = socket.create_connection((address, port), self._connect_seconds())
            except OSError as error:
                last_error = error
                continue
            try:
                self.deadline.add(stream)
            except OSError:
                stream.close()
                raise
            stream.settimeout(self.idle_timeout)
            return stream
        raise last_error

    def _connect_seconds(self) -> float:
        """Return the seconds for one connection attempt. Raises TimeoutError where none are left."""
        seconds = self.deadline.seconds_left()
        if seconds <= 0:
            raise TimeoutError("the deadline of the relay has expired")
        return min(self.connect_timeout, seconds)
