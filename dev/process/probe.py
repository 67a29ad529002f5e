"""Readiness probes of processes.

A `Probe` is a value in a `ProcessSpec`; `problem` runs it.
"""

import http.client
import socket
import ssl
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

_PROBE_TIMEOUT_SECONDS = 2.0


@dataclass(frozen=True)
class HttpProbe:
    """Ready when the URL, on an address of this host, returns 200. Certificates are not verified."""

    url: str


@dataclass(frozen=True)
class TcpProbe:
    """Ready when a connection is accepted."""

    host: str
    port: int


@dataclass(frozen=True)
class UnixProbe:
    """Ready when the socket accepts a connection."""

    path: Path


Probe = HttpProbe | TcpProbe | UnixProbe


def problem(probe: Probe) -> str | None:
    """Return None if ready, else the reason. Takes at most two seconds."""
    try:
        match probe:
            case HttpProbe(url):
                return _http(url)
            case TcpProbe(host, port):
                socket.create_connection((host, port), timeout=_PROBE_TIMEOUT_SECONDS).close()
            case UnixProbe(path):
                with socket.socket(socket.AF_UNIX) as connection:
                    connection.settimeout(_PROBE_TIMEOUT_SECONDS)
                    connection.connect(str(path))
    except (OSError, http.client.HTTPException) as error:
        return str(error) or type(error).__name__
    return None


def _http(url: str) -> str | None:
    parts = urlsplit(url)
    host, port = parts.hostname or "", parts.port
    if parts.scheme == "https":
        context = ssl.create_default_context()
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        connection: http.client.HTTPConnection = http.client.HTTPSConnection(
            host, port, timeout=_PROBE_TIMEOUT_SECONDS, context=context
        )
    else:
        connection = http.client.HTTPConnection(host, port, timeout=_PROBE_TIMEOUT_SECONDS)
    try:
        connection.request("GET", parts.path or "/")
        response = connection.getresponse()
        text = response.read(2048).decode(errors="replace").strip()
        return None if response.status == 200 else f"{response.status} {text}"[:300]
    finally:
        connection.close()
