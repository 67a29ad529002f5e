"""A port of this machine that leads to the service on a cluster elsewhere, which has no address of its own.

One kubectl process, kept like a process of the embedded node; it ends when
the service's pod goes, and `make up` starts it again.
"""

from collections.abc import Mapping

from dev.cluster.credentials import SYSTEM_NAMESPACE
from dev.current.options import FORWARDED_PORT
from dev.errors import DevClusterError
from dev.process import program
from dev.process.probe import HttpProbe, TcpProbe, problem
from dev.settings import Settings

NAME = "port-forward"
# What changes from shell to shell and says nothing of how kubectl logs in.
_SHELL_VARIABLES = ("PWD", "OLDPWD", "SHLVL", "_", "CONFIRM", "PURGE", "MAKEFLAGS", "MAKELEVEL", "MFLAGS")


def start(settings: Settings, kubectl: str, inherited: Mapping[str, str]) -> None:
    """Forwards the port, and waits until the service answers there. Raises GroundError."""
    settings.run.mkdir(parents=True, exist_ok=True)
    settings.logs.mkdir(parents=True, exist_ok=True)
    port_in_use = problem(TcpProbe("127.0.0.1", FORWARDED_PORT)) is None
    if port_in_use and program.running(settings, NAME) is None:
        # Else the service that answers there would be taken for this cluster's.
        raise DevClusterError(
            f"Port {FORWARDED_PORT} of this machine is in use, perhaps by the port-forward of another state "
            "directory. The service is installed; end what listens there and run `make up` again, or set "
            "CREWYARD_PUBLIC_URL to the service's own address."
        )
    port_forward = program.ProcessSpec(
        name=NAME,
        argv=(
            kubectl,
            f"--kubeconfig={settings.kubeconfig}",
            f"--namespace={SYSTEM_NAMESPACE}",
            "port-forward",
            "service/crewyard-api",
            f"{FORWARDED_PORT}:8080",
        ),
        environment={name: value for name, value in inherited.items() if name not in _SHELL_VARIABLES},
        probe=HttpProbe(f"http://127.0.0.1:{FORWARDED_PORT}/healthz"),
    )
    program.start(settings, port_forward)
    program.wait_ready(settings, port_forward)


def stop(settings: Settings) -> None:
    """Ends the process, if there is one."""
    program.stop(settings, NAME)


def was_started(settings: Settings) -> bool:
    """Whether the last `up` forwarded a port."""
    return program.pid_file(settings, NAME).exists()


def service_url(settings: Settings, inherited: Mapping[str, str]) -> str:
    """Where this machine reaches the service."""
    return inherited.get("CREWYARD_PUBLIC_URL") or f"http://127.0.0.1:{FORWARDED_PORT}"
