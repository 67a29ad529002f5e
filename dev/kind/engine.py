"""Check that a Docker engine can run kind's nodes, which are privileged containers.

Called once by the choice of a cluster, before the first `up`. A proxy, a rootless engine or a nested engine
often responds and still cannot run them.
"""

import shutil
import subprocess

# Small, and in Docker's default registry.
TRIAL_IMAGE = "busybox:1.37"
_INFO_TIMEOUT_SECONDS = 10
_TRIAL_TIMEOUT_SECONDS = 60
# What a node does at start and an unprivileged container may not: mount, and write a sysctl.
_TRIAL_SCRIPT = "mkdir /t && mount -t tmpfs none /t && echo 0 > /proc/sys/net/ipv4/conf/lo/proxy_arp"


def trial_command() -> list[str]:
    """Return the command that checks whether privileged containers work."""
    return ["docker", "run", "--rm", "--privileged", TRIAL_IMAGE, "sh", "-c", _TRIAL_SCRIPT]


def problem() -> str | None:
    """Return None if kind can run, else the reason. Takes at most 70 seconds, none without Docker."""
    if shutil.which("docker") is None:
        return "the program `docker` is not installed"
    info = ["docker", "info", "--format", "{{.OSType}} {{.ServerVersion}}"]
    return _failure(info, _INFO_TIMEOUT_SECONDS, "the Docker engine does not respond") or _failure(
        trial_command(), _TRIAL_TIMEOUT_SECONDS, "the Docker engine cannot run privileged containers"
    )


def _failure(argv: list[str], seconds: float, failure: str) -> str | None:
    try:
        completed = subprocess.run(argv, capture_output=True, text=True, timeout=seconds, check=False)
    except subprocess.TimeoutExpired:
        return f"{failure}: no response within {seconds:.0f} s"
    except OSError as error:
        return f"{failure}: {error}"
    if completed.returncode == 0:
        return None
    output = (completed.stderr.strip() or completed.stdout.strip()).splitlines()
    return f"{failure}: {output[-1] if output else f'exit code {completed.returncode}'}"
