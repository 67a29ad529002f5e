"""Requirements of the embedded cluster, checked before any change of the machine.

`observe` reads the machine; `message` (pure) lists everything that is missing.
"""

import os
import re
import shutil
import socket
import subprocess
from dataclasses import dataclass
from pathlib import Path

from dev.errors import DevClusterError
from dev.settings import CREWYARD_PORT, GO_MINIMUM, LOOPBACK


@dataclass(frozen=True)
class MachineFacts:
    """Facts about this machine that the embedded cluster depends on."""

    debian: bool
    root: bool
    go: tuple[int, int] | None
    architecture: str


def parse_go_version(text: str) -> tuple[int, int] | None:
    """Return (major, minor) from the output of `go version`."""
    match = re.search(r"\bgo(\d+)\.(\d+)", text)
    return (int(match[1]), int(match[2])) if match else None


def is_debian(os_release: str) -> bool:
    """Return whether /etc/os-release describes Debian or a derivative."""
    values = dict(line.split("=", 1) for line in os_release.splitlines() if "=" in line)
    names = f"{values.get('ID', '')} {values.get('ID_LIKE', '')}".replace('"', "").split()
    return "debian" in names


def message(facts: MachineFacts) -> str | None:
    """Return one message that lists everything missing, or None."""
    minimum = ".".join(map(str, GO_MINIMUM))
    lines = []
    if not facts.debian:
        lines.append("a Debian system with apt-get (for the packages of containerd, runc and others)")
    if not facts.root:
        lines.append("root (to create a bridge, mounts and cgroups): use `sudo make up` or a root shell")
    if facts.go is None:
        lines.append(f"Go {minimum} or newer on PATH (Kubernetes is built from source): https://go.dev/dl/")
    elif facts.go < GO_MINIMUM:
        version = ".".join(map(str, facts.go))
        lines.append(f"Go {minimum} or newer; the one on PATH is {version}: https://go.dev/dl/")
    if facts.architecture not in ("x86_64", "aarch64"):
        lines.append(f"a 64-bit Intel or ARM processor; this one is {facts.architecture}")
    if not lines:
        return None
    return "\n".join(
        ["The embedded Kubernetes cannot be started here. Missing:", *(f"  - {line}" for line in lines)]
    )


def observe() -> MachineFacts:
    """Return the facts of this machine."""
    try:
        release = Path("/etc/os-release").read_text()
    except OSError:
        release = ""
    go = None
    if shutil.which("go"):
        done = subprocess.run(["go", "version"], capture_output=True, text=True, timeout=30, check=False)
        go = parse_go_version(done.stdout)
    return MachineFacts(
        debian=is_debian(release) and shutil.which("apt-get") is not None,
        root=os.geteuid() == 0,
        go=go,
        architecture=os.uname().machine,
    )


def check() -> None:
    """Raise DevClusterError with one message that lists everything missing."""
    text = message(observe())
    if text:
        raise DevClusterError(text)


def check_port(port: int = CREWYARD_PORT) -> None:
    """Raise DevClusterError if a process listens on the service's port; kube-proxy itself does not."""
    try:
        socket.create_server((LOOPBACK, port)).close()
    except OSError as error:
        raise DevClusterError(
            f"The service needs port {port} of {LOOPBACK}: {error}. If a kind cluster of another state "
            "directory uses it, stop that: CREWYARD_STATE=<its directory> CREWYARD_CLUSTER=kind make down"
        ) from error


def check_root() -> None:
    """Raise DevClusterError unless the user is root: only root can undo what `up` did."""
    if os.geteuid() != 0:
        raise DevClusterError("The embedded Kubernetes belongs to root. Use `sudo` or a root shell.")
