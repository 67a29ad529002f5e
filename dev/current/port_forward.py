"""Port forward from this machine to the service, for clusters where the service has no public address.

One kubectl process, managed like a process of the embedded node. It exits at the first request after the
service's pod stopped; `make up` starts it again.
"""

from collections.abc import Mapping

from dev.cluster.credentials import SYSTEM_NAMESPACE
from dev.current.options import FORWARDED_PORT
from dev.errors import DevClusterError
from dev.process import program
from dev.process.probe import HttpProbe, TcpProbe, problem
from dev.settings import Settings

NAME = "port-forward"
# Variables that differ between shells and do not affect how kubectl logs in.
_SHELL_VARIABLES = ("PWD", "OLDPWD", "SHLVL", "_", "CONFIRM", "PURGE", "MAKEFLAGS", "MAKELEVEL", "MFLAGS")


def start(settings: Settings, kubectl: str, inherited: Mapping[str, str]) -> None:
    """Start the port forward and wait until the service answers there. Raises DevClusterError."""
    settings.run.mkdir(parents=True, exist_ok=True)
    settings.logs.mkdir(parents=True, exist_ok=True)
    probe = HttpProbe(f"http://127.0.0.1:{FORWARDED_PORT}/healthz")
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
        probe=probe,
        restarts=2,
    )
    # kubectl also listens after the service's pod was replaced, and exits at the next request.
    if program.running(settings, NAME) and problem(probe):
        program.stop(settings, NAME)
    port_in_use = problem(TcpProbe("127.0.0.1", FORWARDED_PORT)) is None
    if port_in_use and program.running(settings, NAME) is None:
        # Otherwise the readiness probe could reach the service of another cluster.
        raise DevClusterError(
            f"Port {FORWARDED_PORT} of this machine is in use, perhaps by the port-forward of another state "
            "directory. The service is installed; stop that process and run `make up` again, or set "
            "CREWYARD_PUBLIC_URL to the service's own address."
        )
    program.start(settings, port_forward)
    program.wait_ready(settings, port_forward)


def stop(settings: Settings) -> None:
    """Stop the process, if it is running."""
    program.stop(settings, NAME)


def was_started(settings: Settings) -> bool:
    """Return whether the last `up` started a port forward."""
    return program.pid_file(settings, NAME).exists()


def service_url(settings: Settings, inherited: Mapping[str, str]) -> str:
    """Return the URL of the service for this machine."""
    return inherited.get("CREWYARD_PUBLIC_URL") or f"http://127.0.0.1:{FORWARDED_PORT}"
