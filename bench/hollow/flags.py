"""Flags of a control plane on loopback, equal to the dev cluster's where it matters. Pure.

Called by `bench.hollow.control_plane`. The client-side rate limits of Kubernetes' components are lifted, so
that only the machine limits them, as it does Crewyard.
"""

import json
from pathlib import Path

from dev.settings import SERVICE_NETWORK
from tests.testbed.ports import free_port

HOST = "127.0.0.1"
UNLIMITED = {"kube-api-qps": 5000, "kube-api-burst": 5000}
Flags = dict[str, object]


def kubeconfig(directory: Path, port: int, token: str) -> str:
    """Return the administrator's kubeconfig, with the certificate that the apiserver creates at start."""
    cluster = {
        "server": f"https://{HOST}:{port}",
        "certificate-authority": str(directory / "certs" / "apiserver.crt"),
    }
    return json.dumps(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "hollow", "cluster": cluster}],
            "users": [{"name": "admin", "user": {"token": token}}],
            "contexts": [{"name": "hollow", "context": {"cluster": "hollow", "user": "admin"}}],
            "current-context": "hollow",
        }
    )


def etcd(directory: Path, port: int) -> Flags:
    """Return etcd's flags: on loopback without certificates, as it stores no real data."""
    client, peer = f"http://{HOST}:{port}", f"http://{HOST}:{free_port()}"
    return {
        "data-dir": directory / "etcd",
        "listen-client-urls": client,
        "advertise-client-urls": client,
        "listen-peer-urls": peer,
        "initial-advertise-peer-urls": peer,
        "initial-cluster": f"default={peer}",
        "auto-compaction-mode": "periodic",
        "auto-compaction-retention": "5m",
        "quota-backend-bytes": 4 * 1024**3,
        "log-level": "warn",
    }


def apiserver(directory: Path, store: int, port: int) -> Flags:
    """Return the apiserver's flags, with a self-signed certificate; `store` is the port of etcd."""
    return {
        "etcd-servers": f"http://{HOST}:{store}",
        "bind-address": HOST,
        "secure-port": port,
        "cert-dir": directory / "certs",
        "token-auth-file": directory / "tokens.csv",
        "authorization-mode": "RBAC",
        "service-account-issuer": "https://hollow",
        "service-account-key-file": directory / "sa.key",
        "service-account-signing-key-file": directory / "sa.key",
        "service-cluster-ip-range": SERVICE_NETWORK,
        "endpoint-reconciler-type": "none",
        "profiling": "false",
    }


def controllers(directory: Path) -> Flags:
    """Return the flags of kube-controller-manager with one service account per controller."""
    return {
        **_client(directory, "controllers"),
        "service-account-private-key-file": directory / "sa.key",
        "use-service-account-credentials": "true",
    }


def scheduler(directory: Path) -> Flags:
    """Return the flags of kube-scheduler."""
    return _client(directory, "scheduler")


def _client(directory: Path, name: str) -> Flags:
    """Return the flags of a component without leader election and client-side rate limits."""
    return {
        "kubeconfig": directory / "kubeconfig",
        "bind-address": HOST,
        "secure-port": free_port(),
        "cert-dir": directory / f"certs-{name}",
        "leader-elect": "false",
        "profiling": "false",
        **UNLIMITED,
    }
