"""kube-scheduler with its default profile."""

from dev.process.probe import HttpProbe
from dev.process.program import ProcessSpec
from dev.settings import LOOPBACK, Settings

_SECURE_PORT = 10259


def process_spec(settings: Settings) -> ProcessSpec:
    """Return the process that `up` starts."""
    kubeconfig = settings.pki / "scheduler.conf"
    flags = {
        "bind-address": LOOPBACK,
        "secure-port": _SECURE_PORT,
        "kubeconfig": kubeconfig,
        "authentication-kubeconfig": kubeconfig,
        "authorization-kubeconfig": kubeconfig,
        "leader-elect": "false",
        "profiling": "false",
    }
    argv = [str(settings.bin / "kube-scheduler"), *(f"--{name}={value}" for name, value in flags.items())]
    return ProcessSpec(
        name="kube-scheduler", argv=tuple(argv), probe=HttpProbe(f"https://{LOOPBACK}:{_SECURE_PORT}/healthz")
    )
