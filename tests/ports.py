"""Waiting for a server that a test started. Called by what starts Redis and the S3 server."""

import socket
import time


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
