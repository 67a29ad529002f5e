"""kube-controller-manager; each of its controllers uses its own service account."""

from dev.cluster import quota
from dev.process.probe import HttpProbe
from dev.process.program import ProcessSpec
from dev.settings import LOOPBACK, Settings

_SECURE_PORT = 10257


def process_spec(settings: Settings) -> ProcessSpec:
    """Return the process that `up` starts."""
    pki = settings.pki
    kubeconfig = pki / "controller-manager.conf"
    flags = {
        "bind-address": LOOPBACK,
        "secure-port": _SECURE_PORT,
        "kubeconfig": kubeconfig,
        "authentication-kubeconfig": kubeconfig,
        "authorization-kubeconfig": kubeconfig,
        "requestheader-client-ca-file": pki / "front-proxy-ca.crt",
        "client-ca-file": pki / "ca.crt",
        "root-ca-file": pki / "ca.crt",
        "service-account-private-key-file": pki / "sa.key",
        "use-service-account-credentials": "true",
        "cluster-signing-cert-file": pki / "ca.crt",
        "cluster-signing-key-file": pki / "ca.key",
        # One node, one replica: leader election would only delay the start.
        "leader-elect": "false",
        "profiling": "false",
        **quota.SYNC_PERIOD,
    }
    argv = [
        str(settings.bin / "kube-controller-manager"),
        *(f"--{name}={value}" for name, value in flags.items()),
    ]
    return ProcessSpec(
        name="kube-controller-manager",
        argv=tuple(argv),
        probe=HttpProbe(f"https://{LOOPBACK}:{_SECURE_PORT}/healthz"),
    )
