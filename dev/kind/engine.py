"""Whether a Docker engine answers that can carry kind's nodes, which are privileged containers.

Asked by the choice of a cluster, once, before the first `up`. A proxy, a
rootless engine or one inside a container often answers and still cannot.
"""

import shutil
import subprocess

# Small, and in the registry that every engine knows.
TRIAL_IMAGE = "busybox:1.37"
_INFO_TIMEOUT_SECONDS = 10
_TRIAL_TIMEOUT_SECONDS = 60
# What a node does first and a plain container may not: mount, and write a kernel setting.
_TRIAL_SCRIPT = "mkdir /t && mount -t tmpfs none /t && echo 0 > /proc/sys/net/ipv4/conf/lo/proxy_arp"


def trial_command() -> list[str]:
    """The command that shows whether privileged containers work."""
    return ["docker", "run", "--rm", "--privileged", TRIAL_IMAGE, "sh", "-c", _TRIAL_SCRIPT]


def problem() -> str | None:
    """None where kind can run, else why not. Takes at most 70 seconds, a moment where there is no Docker."""
    if shutil.which("docker") is None:
        return "there is no program `docker`"
    info = ["docker", "info", "--format", "{{.OSType}} {{.ServerVersion}}"]
    return _failure(info, _INFO_TIMEOUT_SECONDS, "the Docker engine does not answer") or _failure(
        trial_command(), _TRIAL_TIMEOUT_SECONDS, "the Docker engine runs no privileged container"
    )


def _failure(argv: list[str], seconds: float, failure: str) -> str | None:
    try:
        completed = subprocess.run(argv, capture_output=True, text=True, timeout=seconds, check=False)
    except subprocess.TimeoutExpired:
        return f"{failure}: no answer within {seconds:.0f} s"
    except OSError as error:
        return f"{failure}: {error}"
    if completed.returncode == 0:
        return None
    output = (completed.stderr.strip() or completed.stdout.strip()).splitlines()
    return f"{failure}: {output[-1] if output else f'exit code {completed.returncode}'}"
