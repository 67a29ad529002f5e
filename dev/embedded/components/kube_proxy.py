"""kube-proxy: Services by iptables, node ports on loopback only."""

import json

from dev.process.probe import HttpProbe
from dev.process.program import ProcessSpec
from dev.settings import LOOPBACK, NODE, POD_NETWORK, Settings

_METRICS = f"{LOOPBACK}:10249"


def configuration(settings: Settings) -> dict[str, object]:
    """Return the KubeProxyConfiguration."""
    return {
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "mode": "iptables",
        "clientConnection": {"kubeconfig": str(settings.pki / "proxy.conf")},
        "clusterCIDR": POD_NETWORK,
        "hostnameOverride": NODE,
        "nodePortAddresses": ["127.0.0.0/8"],
        "iptables": {"localhostNodePorts": True, "minSyncPeriod": "0s", "syncPeriod": "30s"},
        # Leave the host's conntrack limits unchanged.
        "conntrack": {"maxPerCore": 0, "min": 0, "tcpEstablishedTimeout": "0s", "tcpCloseWaitTimeout": "0s"},
        "metricsBindAddress": _METRICS,
        "healthzBindAddress": f"{LOOPBACK}:10256",
    }


def process_spec(settings: Settings) -> ProcessSpec:
    """Return the process that `up` starts."""
    file = settings.configuration / "kube-proxy.json"
    return ProcessSpec(
        name="kube-proxy",
        argv=(str(settings.bin / "kube-proxy"), f"--config={file}"),
        files={file: json.dumps(configuration(settings), indent=2)},
        probe=HttpProbe(f"http://{_METRICS}/healthz"),
    )
