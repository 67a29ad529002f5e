"""What `up` does for the fences: the process, and the plugin where containerd looks for it."""

import sys
from pathlib import Path

from dev.network_policy import cni_plugin
from dev.process.probe import Unix
from dev.process.program import Program
from dev.settings import REPOSITORY, Settings

NAME = "crewyard-fences"
"""The plugin's type in the network configuration, which is its file's name."""
DEBIAN = Path("/usr/lib/cni")
_OTHERS = ("bridge", "host-local", "loopback")
_CODE = ("addresses", "enforcer", "policy", "ruleset", "selector", "watcher", "nftables")


def directory(settings: Settings) -> Path:
    """Where containerd finds all its network plugins."""
    return settings.configuration / "cni-plugins"


def plugins(settings: Settings) -> None:
    """Fills that directory: ours, and links to those of the system that the configuration names."""
    place = directory(settings)
    place.mkdir(parents=True, exist_ok=True)
    for name in _OTHERS:
        link = place / name
        if not link.is_symlink():
            link.symlink_to(DEBIAN / name)
    code = (REPOSITORY / "dev" / "network_policy" / "cni_plugin.py").read_text()
    fresh = place / f"{NAME}.new"
    # Without the packages of the site it starts in half the time, and every pod waits for it.
    fresh.write_text(f"#!{sys.executable} -IS\n{code}")
    fresh.chmod(0o755)
    fresh.replace(place / NAME)


def line(settings: Settings) -> str:
    """For people, in the manner of `status`: whether all network policies hold."""
    try:
        problem = cni_plugin.ask(str(settings.fences_socket), {"command": "STATUS"})["problem"]
    except (OSError, ValueError, KeyError) as error:
        problem = f"unknown: {error}"
    return f"{'network policies':24} {problem or 'all hold'}"


def process(settings: Settings) -> Program:
    """The process as `up` starts it; the code counts into its fingerprint."""
    code = "".join((REPOSITORY / "dev" / "network_policy" / f"{name}.py").read_text() for name in _CODE)
    return Program(
        name="fences",
        argv=(sys.executable, "-m", "dev.network_policy.enforcer", str(settings.state)),
        files={settings.run / "fences.code": code + (REPOSITORY / "dev" / "cluster" / "kube_client.py").read_text()},
        cwd=REPOSITORY,
        probe=Unix(settings.fences_socket),
        grace=2,
    )
