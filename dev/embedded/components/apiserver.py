"""kube-apiserver, on the bridge address that both host and pods reach."""

from dev.process.probe import HttpProbe
from dev.process.program import ProcessSpec
from dev.settings import (
    API_PORT,
    BRIDGE_ADDRESS,
    CLUSTER_DOMAIN,
    ETCD_PORT,
    LOOPBACK,
    SERVICE_NETWORK,
    Settings,
)


def process_spec(settings: Settings) -> ProcessSpec:
    """Return the process that `up` starts."""
    pki = settings.pki
    flags = {
        "advertise-address": BRIDGE_ADDRESS,
        "bind-address": BRIDGE_ADDRESS,
        "secure-port": API_PORT,
        "tls-cert-file": pki / "apiserver.crt",
        "tls-private-key-file": pki / "apiserver.key",
        "client-ca-file": pki / "ca.crt",
        "etcd-servers": f"https://{LOOPBACK}:{ETCD_PORT}",
        "etcd-cafile": pki / "etcd" / "ca.crt",
        "etcd-certfile": pki / "apiserver-etcd-client.crt",
        "etcd-keyfile": pki / "apiserver-etcd-client.key",
        "kubelet-client-certificate": pki / "apiserver-kubelet-client.crt",
        "kubelet-client-key": pki / "apiserver-kubelet-client.key",
        # The host does not resolve the node's name.
        "kubelet-preferred-address-types": "InternalIP",
        "service-cluster-ip-range": SERVICE_NETWORK,
        "service-account-issuer": f"https://kubernetes.default.svc.{CLUSTER_DOMAIN}",
        "service-account-key-file": pki / "sa.pub",
        "service-account-signing-key-file": pki / "sa.key",
        "authorization-mode": "Node,RBAC",
        "enable-admission-plugins": "NodeRestriction,PodSecurity",
        "allow-privileged": "true",
        "requestheader-client-ca-file": pki / "front-proxy-ca.crt",
        "requestheader-allowed-names": "front-proxy-client",
        "requestheader-extra-headers-prefix": "X-Remote-Extra-",
        "requestheader-group-headers": "X-Remote-Group",
        "requestheader-username-headers": "X-Remote-User",
        "proxy-client-cert-file": pki / "front-proxy-client.crt",
        "proxy-client-key-file": pki / "front-proxy-client.key",
        "profiling": "false",
    }
    argv = [str(settings.bin / "kube-apiserver"), *(f"--{name}={value}" for name, value in flags.items())]
    return ProcessSpec(
        name="kube-apiserver",
        argv=tuple(argv),
        probe=HttpProbe(f"https://{BRIDGE_ADDRESS}:{API_PORT}/readyz"),
        startup_seconds=120,
    )
