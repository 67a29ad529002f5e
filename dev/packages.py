"""Installation of missing Debian packages.

Programs that exist are used, no matter who installed them; the system's containerd or Docker stays unchanged.
Packages installed here must not start services: while apt runs, a policy-rc.d denies it, and the units of the
installed packages are disabled. Otherwise, for example, a second registry would take the port at the next
boot.
"""

import os
import shutil
import subprocess
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from dev.process import command
from dev.progress import StepProgress
from dev.settings import Settings

# Program, or a file if there is no program → its package.
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
"""Needed by `up`."""
TEST_PACKAGES = {
    "chromium": "chromium",
    "chromium-headless-shell": "chromium-headless-shell",
    "node": "nodejs",
    "npm": "npm",
    "sshd": "openssh-server",
    "/usr/lib/postgresql/15/bin/postgres": "postgresql-15",
    "/usr/lib/postgresql/15/bin/psql": "postgresql-client-15",
    "redis-server": "redis-server",
    "prometheus": "prometheus",
    "promtool": "prometheus",
}
"""Needed only by tests: real servers, and a browser."""
_UNITS = {
    "containerd": "containerd.service",
    "docker-registry": "docker-registry.service",
    "nftables": "nftables.service",
    "openssh-server": "ssh.service",
    "postgresql-15": "postgresql.service",
    "redis-server": "redis-server.service",
    "prometheus": "prometheus.service",
}
# Directories that `su` and `sudo` omit from PATH: iptables, tools that dpkg calls, and Go.
_DIRECTORIES = ("/usr/local/sbin", "/usr/sbin", "/sbin", "/usr/local/go/bin")
_POLICY_RC_D = Path("/usr/sbin/policy-rc.d")


def search_path(path: str) -> str:
    """Return `path` plus the directories that a root shell may lack."""
    entries = [entry for entry in path.split(":") if entry]
    return ":".join([*entries, *(entry for entry in _DIRECTORIES if entry not in entries)])


_SYSTEM_PATH = search_path(os.environ.get("PATH", ""))


def is_present(need: str) -> bool:
    """Return whether this machine has the program or file."""
    return Path(need).exists() if need.startswith("/") else shutil.which(need, path=_SYSTEM_PATH) is not None


def missing(needs: Mapping[str, str], has: Callable[[str], bool] = is_present) -> list[str]:
    """Return the packages to install, sorted."""
    return sorted({package for need, package in needs.items() if not has(need)})


def program_path(name: str) -> str:
    """Return the absolute path of a system program, also from sbin directories missing in the user's PATH."""
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
        # Best effort: a failure matters only after the next boot.
        subprocess.run(["systemctl", "disable", *units], capture_output=True, timeout=60, check=False)


def install(settings: Settings, progress: StepProgress, needs: Mapping[str, str]) -> None:
    """Install the missing packages. Raises CommandFailed with apt's last lines."""
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
