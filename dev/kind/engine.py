"""Whether a Docker engine answers that can carry kind's nodes, which are privileged containers.

Asked by the choice of a cluster, once, before the first `up`. A proxy, a
rootless engine or one inside a container often answers and still cannot.
"""

import shutil
import subprocess

# Small, and in the registry that every engine knows.
TRIAL_IMAGE = "busybox:1.37"
_INFO_SECONDS = 10
_TRIAL_SECONDS = 60
# What a node does first and a plain container may not: mount, and write a kernel setting.
_TRIAL = "mkdir /t && mount -t tmpfs none /t && echo 0 > /proc/sys/net/ipv4/conf/lo/proxy_arp"


def trial() -> list[str]:
    """The command that shows whether privileged containers work."""
    return ["docker", "run", "--rm", "--privileged", TRIAL_IMAGE, "sh", "-c", _TRIAL]


def problem() -> str | None:
    """None where kind can run, else why not. Takes at most 70 seconds, a moment where there is no Docker."""
    if shutil.which("docker") is None:
        return "there is no program `docker`"
    info = ["docker", "info", "--format", "{{.OSType}} {{.ServerVersion}}"]
    return _ask(info, _INFO_SECONDS, "the Docker engine does not answer") or _ask(
        trial(), _TRIAL_SECONDS, "the Docker engine runs no privileged container"
    )


def _ask(argv: list[str], seconds: float, said: str) -> str | None:
    try:
        done = subprocess.run(argv, capture_output=True, text=True, timeout=seconds, check=False)
    except subprocess.TimeoutExpired:
        return f"{said}: no answer within {seconds:.0f} s"
    except OSError as error:
        return f"{said}: {error}"
    if done.returncode == 0:
        return None
    last = (done.stderr.strip() or done.stdout.strip()).splitlines()
    return f"{said}: {last[-1] if last else f'exit code {done.returncode}'}"
