"""containerd: a separate instance beside any of the distribution.

Root, state, socket and namespaces are below the state directory. A hosts file configures the local registry:
its name works here over plain HTTP without an entry in the host's DNS.
"""

import json
from collections.abc import Mapping

from dev.network_policy import install
from dev.packages import program_path
from dev.process.probe import UnixProbe
from dev.process.program import ProcessSpec
from dev.settings import BRIDGE, BRIDGE_ADDRESS, POD_NETWORK, REGISTRY, REGISTRY_HOST, REGISTRY_PORT, Settings

_PROXY_NAMES = ("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy")


def network(settings: Settings, mtu: int) -> str:
    """Return the CNI configuration.

    It does not masquerade: `dev.net.firewall` does with one rule, where a chain per pod would be slow. The
    second plugin delays the pod until the rules of its network policies are in place.
    """
    bridge = {
        "type": "bridge",
        "bridge": BRIDGE,
        "isGateway": True,
        "hairpinMode": True,
        "mtu": mtu,
        "ipam": {
            "type": "host-local",
            "dataDir": str(settings.run / "addresses"),
            "ranges": [[{"subnet": POD_NETWORK, "gateway": BRIDGE_ADDRESS}]],
            "routes": [{"dst": "0.0.0.0/0"}],
        },
    }
    enforcer = {"type": install.NAME, "socket": str(settings.network_policy_socket)}
    return json.dumps({"cniVersion": "0.4.0", "name": "crewyard", "plugins": [bridge, enforcer]}, indent=2)


def configuration(settings: Settings, pause: str) -> str:
    """Return the TOML file. `pause` is the reference of the sandbox image."""
    return f"""version = 2
root = "{settings.data}/containerd"
state = "{settings.run}/containerd"
oom_score = 0

[grpc]
  address = "{settings.containerd_socket}"

[plugins."io.containerd.internal.v1.opt"]
  path = "{settings.data}/containerd/opt"

[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{pause}"
  stream_server_address = "127.0.0.1"
  stream_server_port = "0"
  netns_mounts_under_state_dir = true
  # Lowering a score needs CAP_SYS_RESOURCE, which virtual machines and containers often lack.
  restrict_oom_score_adj = true
  tolerate_missing_hugetlb_controller = true

  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "{install.directory(settings)}"
    conf_dir = "{settings.configuration}/cni"

  [plugins."io.containerd.grpc.v1.cri".registry]
    config_path = "{settings.configuration}/registries"

  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "overlayfs"
    discard_unpacked_layers = true
    default_runtime_name = "runc"

    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"

      [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
        BinaryName = "{program_path("runc")}"
        Root = "{settings.run}/runc"
        SystemdCgroup = false
"""


def process_spec(settings: Settings, pause: str, mtu: int, environment: Mapping[str, str]) -> ProcessSpec:
    """Return the process that `up` starts. Of `environment` only proxy variables are used."""
    file = settings.configuration / "containerd.toml"
    mirror = f"http://{BRIDGE_ADDRESS}:{REGISTRY_PORT}"
    hosts = f'server = "{mirror}"\n\n[host."{mirror}"]\n  capabilities = ["pull", "resolve"]\n'
    proxies = {name: environment[name] for name in _PROXY_NAMES if environment.get(name)}
    if proxies:
        proxies["NO_PROXY"] = f"{BRIDGE_ADDRESS},{REGISTRY_HOST},127.0.0.1,localhost"
    return ProcessSpec(
        name="containerd",
        argv=(program_path("containerd"), "--config", str(file)),
        files={
            file: configuration(settings, pause),
            settings.configuration / "cni" / "10-crewyard.conflist": network(settings, mtu),
            settings.configuration / "registries" / REGISTRY / "hosts.toml": hosts,
        },
        environment=proxies,
        probe=UnixProbe(settings.containerd_socket),
        grace_seconds=20,
    )
