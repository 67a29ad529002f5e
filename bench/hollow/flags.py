"""The flags of a control plane on the loopback, as on the ground where it matters. Pure.

Called by `bench.hollow.control_plane`. Limits of requests that Kubernetes' own clients keep by themselves are lifted,
so that the machine is what limits, for them as for us.
"""

import json
from pathlib import Path

from dev.settings import SERVICE_NETWORK
from tests.testbed.ports import free_port

HOST = "127.0.0.1"
UNLIMITED = {"kube-api-qps": 5000, "kube-api-burst": 5000}
Flags = dict[str, object]


def kubeconfig(directory: Path, port: int, token: str) -> str:
    """The administrator's, with the certificate that the apiserver makes at its start."""
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
    """On the loopback without certificates: there is nothing real in it."""
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
    """With a certificate that it makes itself; `store` is the port of etcd."""
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
    """kube-controller-manager, each of its controllers under an account of its own, as on the ground."""
    return {
        **_client(directory, "controllers"),
        "service-account-private-key-file": directory / "sa.key",
        "use-service-account-credentials": "true",
    }


def scheduler(directory: Path) -> Flags:
    """kube-scheduler."""
    return _client(directory, "scheduler")


def _client(directory: Path, name: str) -> Flags:
    """A part that is alone in its work and asks the apiserver as often as it likes."""
    return {
        "kubeconfig": directory / "kubeconfig",
        "bind-address": HOST,
        "secure-port": free_port(),
        "cert-dir": directory / f"certs-{name}",
        "leader-elect": "false",
        "profiling": "false",
        **UNLIMITED,
    }
