"""etcd, on loopback. It requires client certificates, because all local users can connect to loopback."""

from dev.process.probe import HttpProbe
from dev.process.program import ProcessSpec
from dev.settings import ETCD_PORT, LOOPBACK, Settings

_HEALTH = f"http://{LOOPBACK}:2381"


def process_spec(settings: Settings) -> ProcessSpec:
    """Return the process that `up` starts."""
    client = f"https://{LOOPBACK}:{ETCD_PORT}"
    peer = f"https://{LOOPBACK}:2380"
    pki = settings.pki / "etcd"
    flags = {
        "name": "crewyard",
        "data-dir": settings.data / "etcd",
        "listen-client-urls": client,
        "advertise-client-urls": client,
        "listen-peer-urls": peer,
        "initial-advertise-peer-urls": peer,
        "initial-cluster": f"crewyard={peer}",
        "listen-metrics-urls": _HEALTH,
        "cert-file": pki / "server.crt",
        "key-file": pki / "server.key",
        "client-cert-auth": "true",
        "trusted-ca-file": pki / "ca.crt",
        "peer-cert-file": pki / "peer.crt",
        "peer-key-file": pki / "peer.key",
        "peer-client-cert-auth": "true",
        "peer-trusted-ca-file": pki / "ca.crt",
        # Runs are created and deleted often: without compaction the history fills the default 2 GiB.
        "auto-compaction-mode": "periodic",
        "auto-compaction-retention": "10m",
        "quota-backend-bytes": 4 * 1024**3,
        "snapshot-count": 10000,
        "log-level": "warn",
    }
    argv = [str(settings.bin / "etcd"), *(f"--{name}={value}" for name, value in flags.items())]
    return ProcessSpec(name="etcd", argv=tuple(argv), probe=HttpProbe(f"{_HEALTH}/health"))
