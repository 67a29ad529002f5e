"""Certificates and kubeconfigs of the node, created by kubeadm.

Called by `up` before the first process. Kept until their inputs change, and renewed before kubeadm's validity
of one year ends; the CAs stay, so issued service account tokens stay valid.
"""

import hashlib
import json
import time
from collections.abc import Callable
from pathlib import Path

from dev import files
from dev.process import command
from dev.progress import StepProgress
from dev.settings import (
    API_PORT,
    BRIDGE_ADDRESS,
    CLUSTER_DOMAIN,
    KUBERNETES_VERSION,
    LOOPBACK,
    NODE,
    POD_NETWORK,
    SERVICE_NETWORK,
    Settings,
)

_RENEW_AFTER_SECONDS = 300 * 24 * 3600
_KEPT_PREFIXES = ("ca.", "front-proxy-ca.", "sa.")
COMPONENTS = ("controller-manager", "scheduler", "kubelet")


def configuration(pki: Path) -> str:
    """Return kubeadm's configuration: JSON documents, which are also YAML."""
    init = {
        "apiVersion": "kubeadm.k8s.io/v1beta4",
        "kind": "InitConfiguration",
        "localAPIEndpoint": {"advertiseAddress": BRIDGE_ADDRESS, "bindPort": API_PORT},
        "nodeRegistration": {"name": NODE, "criSocket": "unix:///nowhere"},
    }
    cluster = {
        "apiVersion": "kubeadm.k8s.io/v1beta4",
        "kind": "ClusterConfiguration",
        "kubernetesVersion": f"v{KUBERNETES_VERSION}",
        "clusterName": NODE,
        "certificatesDir": str(pki),
        "controlPlaneEndpoint": f"{BRIDGE_ADDRESS}:{API_PORT}",
        "networking": {
            "podSubnet": POD_NETWORK,
            "serviceSubnet": SERVICE_NETWORK,
            "dnsDomain": CLUSTER_DOMAIN,
        },
        "apiServer": {"certSANs": [LOOPBACK, "localhost", BRIDGE_ADDRESS]},
    }
    return "\n---\n".join(json.dumps(document, indent=2) for document in (init, cluster)) + "\n"


def is_current(stamp: str, config_hash: str, now: float) -> bool:
    """Return whether a stamp `<hash> <epoch seconds>` matches the configuration and is recent."""
    stamp_hash, _, created = stamp.partition(" ")
    return stamp_hash == config_hash and created.isdigit() and 0 <= now - int(created) < _RENEW_AFTER_SECONDS


def ensure(settings: Settings, progress: StepProgress, clock: Callable[[], float] = time.time) -> None:
    """Create what is missing. Raises CommandFailed with kubeadm's message."""
    text = configuration(settings.pki)
    config_hash = hashlib.sha256(text.encode()).hexdigest()
    stamp = settings.pki / "stamp"
    if stamp.exists() and is_current(stamp.read_text(), config_hash, clock()):
        return
    with progress.step("certificates"):
        settings.pki.mkdir(parents=True, exist_ok=True)
        settings.pki.chmod(0o700)
        for path in settings.pki.rglob("*"):
            if path.is_file() and not path.name.startswith(_KEPT_PREFIXES):
                path.unlink()
        file = settings.configuration / "kubeadm.yaml"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        kubeadm = str(settings.bin / "kubeadm")
        command.read_output([kubeadm, "init", "phase", "certs", "all", "--config", str(file)])
        for component in COMPONENTS:
            phase = [kubeadm, "init", "phase", "kubeconfig", component]
            command.read_output([*phase, "--config", str(file), "--kubeconfig-dir", str(settings.pki)])
        user = [kubeadm, "kubeconfig", "user", "--config", str(file), "--validity-period", "8760h"]
        proxy = command.read_output([*user, "--client-name", "system:kube-proxy"])
        files.write(settings.pki / "proxy.conf", proxy, files.PRIVATE_MODE)
        admin = command.read_output([*user, "--client-name", "crewyard-admin", "--org", "system:masters"])
        files.write(settings.kubeconfig, admin, files.PRIVATE_MODE)
        files.write(stamp, f"{config_hash} {int(clock())}")
