"""The certificate of a proxy, and the kubeconfig that leads a process to it. Called by the proxy."""

import base64
import json
import subprocess
from pathlib import Path


def certificate(directory: Path) -> Path:
    """A PEM file with a key and a certificate for 127.0.0.1 that is its own authority."""
    found = directory / "proxy.pem"
    words = (
        "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=proxy "
        "-addext subjectAltName=IP:127.0.0.1 -keyout key.pem -out certificate.pem"
    )
    subprocess.run(words.split(), cwd=directory, check=True, capture_output=True, timeout=60)
    found.write_bytes((directory / "key.pem").read_bytes() + (directory / "certificate.pem").read_bytes())
    return found


def kubeconfig(directory: Path, port: int) -> Path:
    """A kubeconfig for the proxy at that port. It holds no credential: the proxy has the true ones."""
    authority = base64.b64encode((directory / "certificate.pem").read_bytes()).decode()
    cluster = {"server": f"https://127.0.0.1:{port}", "certificate-authority-data": authority}
    whole = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "proxy",
        "contexts": [{"name": "proxy", "context": {"cluster": "proxy", "user": "proxy"}}],
        "clusters": [{"name": "proxy", "cluster": cluster}],
        # Kopf wants some credential; the proxy drops this one.
        "users": [{"name": "proxy", "user": {"token": "of-the-proxy"}}],
    }
    file = directory / f"kubeconfig-{port}"
    file.write_text(json.dumps(whole))
    return file
