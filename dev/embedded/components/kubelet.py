"""kubelet: the node `crewyard`, at the bridge address.

Works on cgroup v1 and v2, below its own cgroup, to let `down` find the pods' processes.
"""

import json

from dev.process.probe import HttpProbe
from dev.process.program import ProcessSpec
from dev.settings import BRIDGE_ADDRESS, CGROUP, CLUSTER_DOMAIN, LOOPBACK, NODE, Settings

_HEALTH_PORT = 10248


def configuration(settings: Settings) -> dict[str, object]:
    """Return the KubeletConfiguration."""
    home = settings.data / "kubelet"
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "address": BRIDGE_ADDRESS,
        "port": 10250,
        "readOnlyPort": 0,
        "healthzBindAddress": LOOPBACK,
        "healthzPort": _HEALTH_PORT,
        "authentication": {
            "anonymous": {"enabled": False},
            "webhook": {"enabled": True},
            "x509": {"clientCAFile": str(settings.pki / "ca.crt")},
        },
        "authorization": {"mode": "Webhook"},
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": f"/{CGROUP}",
        "failCgroupV1": False,
        "enforceNodeAllocatable": [],
        "failSwapOn": False,
        "clusterDNS": [BRIDGE_ADDRESS],
        "clusterDomain": CLUSTER_DOMAIN,
        "resolvConf": str(settings.configuration / "pods-resolv.conf"),
        "containerRuntimeEndpoint": f"unix://{settings.containerd_socket}",
        "podLogsDir": str(settings.logs / "pods"),
        "volumePluginDir": str(home / "volume-plugins"),
        "maxPods": 250,
        "podPidsLimit": 1024,
        # A development machine's disk is often nearly full; the default thresholds would evict pods.
        "evictionHard": {
            "memory.available": "100Mi",
            "nodefs.available": "3%",
            "nodefs.inodesFree": "2%",
            "imagefs.available": "3%",
            "imagefs.inodesFree": "2%",
        },
        "imageGCHighThresholdPercent": 95,
        "imageGCLowThresholdPercent": 90,
        "registryPullQPS": 0,
        "serializeImagePulls": False,
        "maxParallelImagePulls": 5,
        "eventRecordQPS": 0,
        "kubeAPIQPS": 200,
        "kubeAPIBurst": 400,
    }


def process_spec(settings: Settings) -> ProcessSpec:
    """Return the process that `up` starts."""
    file = settings.configuration / "kubelet.json"
    flags = {
        "config": file,
        "kubeconfig": settings.pki / "kubelet.conf",
        "root-dir": settings.data / "kubelet",
        "cert-dir": settings.pki / "kubelet",
        "hostname-override": NODE,
        "node-ip": BRIDGE_ADDRESS,
    }
    resolv = f"nameserver {BRIDGE_ADDRESS}\n"
    return ProcessSpec(
        name="kubelet",
        argv=(str(settings.bin / "kubelet"), *(f"--{name}={value}" for name, value in flags.items())),
        files={
            file: json.dumps(configuration(settings), indent=2),
            settings.configuration / "pods-resolv.conf": resolv,
        },
        probe=HttpProbe(f"http://{LOOPBACK}:{_HEALTH_PORT}/healthz"),
        # kubelet exits if containerd listens but has not finished loading its existing containers.
        restarts=5,
    )
