"""Directories and addresses of the dev cluster.

Created once by `dev.__main__` from the environment. The addresses are constants: a machine runs one embedded
node at a time.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from dev.errors import DevClusterError

REPOSITORY = Path(__file__).resolve().parent.parent

KUBERNETES_VERSION = "1.36.3"
KANIKO_VERSION = "1.24.0"
GO_MINIMUM = (1, 26)

NODE = "crewyard"
CLUSTER_DOMAIN = "cluster.local"
HOST_NAME = "host.crewyard.internal"
REGISTRY_HOST = "registry.crewyard.internal"
REGISTRY_PORT = 5000
REGISTRY_TOKENS_PORT = 5001
REGISTRY = f"{REGISTRY_HOST}:{REGISTRY_PORT}"

BRIDGE = "crewyard0"
BRIDGE_ADDRESS = "10.213.0.1"
POD_NETWORK = "10.213.0.0/16"
SERVICE_NETWORK = "10.214.0.0/16"
LOOPBACK = "127.0.0.1"
API_PORT = 6443
ETCD_PORT = 2379
POSTGRESQL_PORT = 5432
REDIS_PORT = 6379
OBJECT_STORE_PORT = 7070
CREWYARD_PORT = 30080
CREWYARD_URL = f"http://{LOOPBACK}:{CREWYARD_PORT}"

CGROUP = "crewyard"

# AF_UNIX paths end at 107 bytes; the longest socket below the state directory takes 40.
_STATE_PATH_MAX = 67


@dataclass(frozen=True)
class Settings:
    """The directories of one dev cluster, all below `state`."""

    state: Path

    @property
    def bin(self) -> Path:
        """kubectl and the other programs by name; on PATH after `env`."""
        return self.state / "bin"

    @property
    def configuration(self) -> Path:
        """Configuration files of the processes, rewritten by every `up`."""
        return self.state / "config"

    @property
    def pki(self) -> Path:
        """Certificates, keys and the components' kubeconfigs."""
        return self.state / "pki"

    @property
    def logs(self) -> Path:
        """One log per process and long step, and the pods' logs in `pods`."""
        return self.state / "logs"

    @property
    def run(self) -> Path:
        """State that is valid until the next reboot or `down`: process records, sockets, mounts."""
        return self.state / "run"

    @property
    def data(self) -> Path:
        """Data that `down` keeps: etcd, registry, images, volumes."""
        return self.state / "data"

    @property
    def kubeconfig(self) -> Path:
        """The administrator's kubeconfig."""
        return self.state / "kubeconfig"

    @property
    def admin_key(self) -> Path:
        """The first API key in plain text; the cluster stores its hash."""
        return self.state / "admin-key"

    @property
    def containerd_socket(self) -> Path:
        """The containerd socket; it also identifies this containerd's shims."""
        return self.run / "containerd.sock"

    @property
    def network_policy_socket(self) -> Path:
        """The socket where the CNI plugin requests the rules of a pod."""
        return self.run / "fences.sock"

    @property
    def service_hosts(self) -> Path:
        """Names and addresses of the cluster's Services in dnsmasq's format."""
        return self.run / "services.hosts"


def from_environment(environment: Mapping[str, str]) -> Settings:
    """Return the settings from `CREWYARD_STATE`, `XDG_CACHE_HOME` and `HOME`.

    Raises DevClusterError if the directory cannot be used.
    """
    configured = environment.get("CREWYARD_STATE")
    if configured:
        state = Path(configured)
    else:
        cache = environment.get("XDG_CACHE_HOME") or f"{environment.get('HOME', '/root')}/.cache"
        state = Path(cache) / "crewyard"
    if not state.is_absolute():
        raise DevClusterError(
            f"CREWYARD_STATE is {str(state)!r}, which is not an absolute path. Set an absolute path."
        )
    if len(os.fsencode(state)) > _STATE_PATH_MAX:
        raise DevClusterError(
            f"The path of the state directory {state} is too long for the sockets in it. "
            f"Set CREWYARD_STATE to a path of at most {_STATE_PATH_MAX} bytes."
        )
    if any(character.isspace() or character in ",:'\"\\" for character in str(state)):
        raise DevClusterError(
            f"The path {state} of the state directory has spaces, quotes, commas or colons. "
            "Set CREWYARD_STATE."
        )
    return Settings(state=state)
