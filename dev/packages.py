"""Installs what is missing from the system's own packages.

A program that is there is used, whoever installed it; so an own containerd or
Docker stays as it is. What is installed here must not start by itself: while
apt works, a policy-rc.d denies it, and the units of packages that this run
installed are disabled. Otherwise a second registry would take the port at
the next boot.
"""

import os
import shutil
import subprocess
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from dev.process import command
from dev.progress import Progress
from dev.settings import Settings

# Program, or a file where there is no program → the package that has it.
CLUSTER_PACKAGES = {
    "containerd": "containerd",
    "runc": "runc",
    "/usr/lib/cni/bridge": "containernetworking-plugins",
    "iptables": "iptables",
    "nft": "nftables",
    "conntrack": "conntrack",
    "docker-registry": "docker-registry",
    "dnsmasq": "dnsmasq-base",
    "ip": "iproute2",
    "mount": "mount",
    "modprobe": "kmod",
    "mmdebstrap": "mmdebstrap",
    "catatonit": "catatonit",
    "openssl": "openssl",
    "/etc/ssl/certs/ca-certificates.crt": "ca-certificates",
}
"""What `up` needs."""
TEST_PACKAGES = {
    "chromium": "chromium",
    "node": "nodejs",
    "npm": "npm",
    "sshd": "openssh-server",
    "/usr/lib/postgresql/15/bin/postgres": "postgresql-15",
    "/usr/lib/postgresql/15/bin/psql": "postgresql-client-15",
    "redis-server": "redis-server",
    "prometheus": "prometheus",
    "promtool": "prometheus",
}
"""What only tests need: real servers, and a browser."""
_UNITS = {
    "containerd": "containerd.service",
    "docker-registry": "docker-registry.service",
    "nftables": "nftables.service",
    "openssh-server": "ssh.service",
    "postgresql-15": "postgresql.service",
    "redis-server": "redis-server.service",
    "prometheus": "prometheus.service",
}
# What `su` and `sudo` leave out of PATH: iptables and what dpkg calls, and where Go unpacks to.
_DIRECTORIES = ("/usr/local/sbin", "/usr/sbin", "/sbin", "/usr/local/go/bin")
_POLICY_RC_D = Path("/usr/sbin/policy-rc.d")


def search_path(path: str) -> str:
    """`path` with the directories at its end that a root shell may lack."""
    entries = [entry for entry in path.split(":") if entry]
    return ":".join([*entries, *(entry for entry in _DIRECTORIES if entry not in entries)])


_SYSTEM_PATH = search_path(os.environ.get("PATH", ""))


def is_present(need: str) -> bool:
    """Whether this machine has the program or file."""
    return Path(need).exists() if need.startswith("/") else shutil.which(need, path=_SYSTEM_PATH) is not None


def missing(needs: Mapping[str, str], has: Callable[[str], bool] = is_present) -> list[str]:
    """The packages to install, sorted."""
    return sorted({package for need, package in needs.items() if not has(need)})


def program_path(name: str) -> str:
    """The absolute path of a system program, also from the sbin directories that a user's PATH leaves out."""
    return shutil.which(name, path=_SYSTEM_PATH) or name


@contextmanager
def _no_service_starts() -> Iterator[None]:
    if _POLICY_RC_D.exists():
        yield
        return
    _POLICY_RC_D.write_text("#!/bin/sh\nexit 101\n")
    _POLICY_RC_D.chmod(0o755)
    try:
        yield
    finally:
        _POLICY_RC_D.unlink(missing_ok=True)


def _disable(packages: Iterable[str]) -> None:
    units = [_UNITS[package] for package in packages if package in _UNITS]
    if units and shutil.which("systemctl"):
        # Best effort: without it the machine still works until its next boot.
        subprocess.run(["systemctl", "disable", *units], capture_output=True, timeout=60, check=False)


def install(settings: Settings, progress: Progress, needs: Mapping[str, str]) -> None:
    """Installs the packages that are missing. Raises CommandFailed with apt's last lines."""
    packages = missing(needs)
    if not packages:
        return
    quiet = {"DEBIAN_FRONTEND": "noninteractive"}
    with progress.step(f"system packages ({', '.join(packages)})") as step, _no_service_starts():
        log = settings.logs / "apt.log"
        command.run(["apt-get", "update"], step=step, log=log, seconds=300, environment=quiet)
        argv = ["apt-get", "install", "--yes", "--no-install-recommends", "--no-remove", *packages]
        command.run(argv, step=step, log=log, seconds=900, environment=quiet)
        step.detail = ""
    _disable(packages)
