"""Ports for servers that a test starts, and waiting for these servers."""

import contextlib
import fcntl
import os
import random
import socket
import tempfile
import time
from pathlib import Path

FIRST_PORT = 20_000
"""Pods of the dev cluster may connect to no lower port of this machine (`dev.cluster.egress`)."""
FIRST_NODE_PORT = 30_000
MIN_RANGE_PORTS = 1000
MAX_ATTEMPTS = 200
_EPHEMERAL_RANGE = Path("/proc/sys/net/ipv4/ip_local_port_range")
"""The kernel takes the local port of each connection from it: a port there may be taken a moment later."""
_RESERVED = Path(tempfile.gettempdir()) / f"crewyard-test-ports-{os.getuid()}"


def free_port() -> int:
    """Return a port that nothing listens on, reserved for this process against other tests until it exits.

    A server may bind it later, and again after the server was killed.
    """
    end = FIRST_NODE_PORT
    if _EPHEMERAL_RANGE.exists():
        end = min(end, int(_EPHEMERAL_RANGE.read_text().split()[0]))
    if end - FIRST_PORT >= MIN_RANGE_PORTS:
        for port in random.SystemRandom().sample(range(FIRST_PORT, end), MAX_ATTEMPTS):
            if _is_free(port) and _reserve(port):
                return port
    with socket.socket() as probe:
        probe.bind(("0.0.0.0", 0))
        return int(probe.getsockname()[1])


def until_listening(port: int, seconds: float) -> None:
    """Wait until a server listens on that port of loopback. Raises OSError after `seconds`."""
    end = time.monotonic() + seconds
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            if time.monotonic() > end:
                raise
        time.sleep(0.02)


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("0.0.0.0", port))
        except OSError:
            return False
        return True


def _reserve(port: int) -> bool:
    """Reserve `port` with a file that names this process. A file of an exited process does not count."""
    _RESERVED.mkdir(exist_ok=True)
    file = _RESERVED / str(port)
    with (_RESERVED / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with contextlib.suppress(OSError):
            if Path(f"/proc/{file.read_text()}").exists():
                return False
        file.write_text(str(os.getpid()))
    return True
