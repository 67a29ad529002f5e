"""Certificate authorities that libgit2 accepts besides the system's. Called by `controller.git`.

libgit2 has one store of them for the whole process, so what one Project names is
accepted for all: the gate's addresses and the credentials stay apart.
"""

import hashlib
import os
import ssl
import tempfile
import threading
from pathlib import Path

import pygit2

MAX_EXTRA = 100
_lock = threading.Lock()
_extra: dict[str, str] = {}


def trust(ca: str) -> None:
    """Adds a PEM text to what is accepted. Raises ValueError where there are too many."""
    name = hashlib.sha256(ca.encode()).hexdigest()
    with _lock:
        if name in _extra:
            return
        if len(_extra) >= MAX_EXTRA:
            raise ValueError("too many certificate authorities are named by Projects")
        _extra[name] = ca
        paths = ssl.get_default_verify_paths()
        system = Path(os.environ.get("SSL_CERT_FILE") or paths.cafile or "/etc/ssl/certs/ca-certificates.crt")
        known = system.read_text() if system.is_file() else ""
        with tempfile.NamedTemporaryFile("w", suffix=".pem", delete=False) as bundle:
            bundle.write("\n".join([known, *_extra.values()]))
        pygit2.settings.set_ssl_cert_locations(bundle.name, None)
        Path(bundle.name).unlink()
