"""Ports for servers that a test starts, and waiting for these. Called by what starts such servers."""

import random
import socket
import time
from pathlib import Path

_LEAST = 20_000
"""Pods of the ground may call no port of this machine below it (`dev.cluster.egress`)."""
_EPHEMERAL = Path("/proc/sys/net/ipv4/ip_local_port_range")
"""From which the kernel takes the near end of each connection: a port of it may be gone a moment later."""


def free_port() -> int:
    """A port that nothing listens on now, and that no connection of this machine is given meanwhile.

    It may be bound later, and again after its server was killed.
    """
    # Those of nodes' services begin at 30000.
    most = min(30_000, int(_EPHEMERAL.read_text().split()[0])) if _EPHEMERAL.exists() else 0
    for port in random.SystemRandom().sample(range(_LEAST, most), 50) if most > _LEAST + 1000 else ():
        with socket.socket() as probe:
            try:
                probe.bind(("0.0.0.0", port))
            except OSError:
                continue
            return port
    with socket.socket() as probe:
        probe.bind(("0.0.0.0", 0))
        return int(probe.getsockname()[1])


def until_listening(port: int, seconds: float) -> None:
    """Returns once something listens on that port of loopback. Raises OSError where nothing does in time."""
    end = time.monotonic() + seconds
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            if time.monotonic() > end:
                raise
        time.sleep(0.02)
