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

from dev import state
from dev.errors import DevClusterError
from dev.process import command
from dev.progress import StepProgress
from dev.settings import Settings

_POSTGRESQL = Path("/usr/lib/postgresql")
POSTGRES = f"{_POSTGRESQL}/*/bin/postgres"
"""The server program: its version differs between Debian's releases."""

# Program, or the pattern of a file that is not on PATH → its package.
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
    POSTGRES: "postgresql",
    "/usr/lib/postgresql/*/bin/psql": "postgresql-client",
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
    "postgresql": "postgresql.service",
    "redis-server": "redis-server.service",
    "prometheus": "prometheus.service",
}
# Directories that `su` and `sudo` omit from PATH: iptables, tools that dpkg calls, and Go.
_DIRECTORIES = ("/usr/local/sbin", "/usr/sbin", "/sbin", "/usr/local/go/bin")
_LOCK_TIMEOUT_SECONDS = 300
_POLICY_RC_D = Path("/usr/sbin/policy-rc.d")
# The comment identifies a file that a killed `up` left.
_POLICY = "#!/bin/sh\n# crewyard: make up\nexit 101\n"


def search_path(path: str) -> str:
    """Return `path` plus the directories that a root shell may lack."""
    entries = [entry for entry in path.split(":") if entry]
    return ":".join([*entries, *(entry for entry in _DIRECTORIES if entry not in entries)])


_SYSTEM_PATH = search_path(os.environ.get("PATH", ""))


def is_present(need: str) -> bool:
    """Return whether this machine has the program or file."""
    if need.startswith("/"):
        return any(Path("/").glob(need[1:]))
    return shutil.which(need, path=_SYSTEM_PATH) is not None


def postgresql_programs(version: str = "*") -> Path:
    """Return the directory of the programs of the newest installed PostgreSQL, or of this version."""
    installed = [program.parent for program in _POSTGRESQL.glob(f"{version}/bin/postgres")]
    return max(
        installed,
        key=lambda path: [int(number) for number in path.parent.name.split(".")],
        default=_POSTGRESQL / version / "bin",
    )


def missing(needs: Mapping[str, str], has: Callable[[str], bool] = is_present) -> list[str]:
    """Return the packages to install, sorted."""
    return sorted({package for need, package in needs.items() if not has(need)})


def program_path(name: str) -> str:
    """Return the absolute path of a system program, also from sbin directories missing in the user's PATH."""
    return shutil.which(name, path=_SYSTEM_PATH) or name


def remove_policy() -> None:
    """Remove the policy-rc.d that an interrupted installation left.

    That of someone else stays, and that of an installation that runs.
    """
    descriptor = os.open(_POLICY_RC_D.parent, os.O_RDONLY)
    try:
        if state.try_lock(descriptor) and _POLICY_RC_D.exists() and _POLICY_RC_D.read_text() == _POLICY:
            _POLICY_RC_D.unlink()
    finally:
        os.close(descriptor)


@contextmanager
def _no_service_starts() -> Iterator[None]:
    if _POLICY_RC_D.exists() and _POLICY_RC_D.read_text() != _POLICY:
        yield
        return
    _POLICY_RC_D.write_text(_POLICY)
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
    """Install the missing packages. Raises CommandFailed with apt's last lines, or DevClusterError."""
    packages = missing(needs)
    if not packages:
        return
    if os.geteuid() != 0 or not is_present("apt-get"):
        raise DevClusterError(
            f"These packages are missing: {', '.join(packages)}. Install them as root, then repeat the "
            "command. The names are Debian's."
        )
    quiet = {"DEBIAN_FRONTEND": "noninteractive"}
    with (
        # The directory of policy-rc.d: the lock is the machine's, not that of one state directory.
        state.hold(os.open(_POLICY_RC_D.parent, os.O_RDONLY), progress, "installs packages"),
        progress.step(f"system packages ({', '.join(packages)})") as step,
        _no_service_starts(),
    ):
        log = settings.logs / "apt.log"
        command.run(["apt-get", "update"], step=step, log=log, seconds=300, environment=quiet)
        argv = ["apt-get", "install", "--yes", "--no-install-recommends", "--no-remove"]
        argv += ["-o", f"DPkg::Lock::Timeout={_LOCK_TIMEOUT_SECONDS}", *packages]
        command.run(argv, step=step, log=log, seconds=900, environment=quiet, interruptible=False)
        step.detail = ""
    _disable(packages)
