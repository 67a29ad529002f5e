"""What `up` does for the fences: the process, and the plugin where containerd looks for it."""

import sys
from pathlib import Path

from dev.network_policy import cni_plugin
from dev.process.probe import UnixProbe
from dev.process.program import ProcessSpec
from dev.settings import REPOSITORY, Settings

NAME = "crewyard-fences"
"""The plugin's type in the network configuration, which is its file's name."""
DEBIAN = Path("/usr/lib/cni")
_OTHERS = ("bridge", "host-local", "loopback")
_CODE = ("addresses", "enforcer", "policy", "ruleset", "selector", "watcher", "nftables")


def directory(settings: Settings) -> Path:
    """Where containerd finds all its network plugins."""
    return settings.configuration / "cni-plugins"


def install_plugins(settings: Settings) -> None:
    """Fills that directory: ours, and links to those of the system that the configuration names."""
    plugin_directory = directory(settings)
    plugin_directory.mkdir(parents=True, exist_ok=True)
    for name in _OTHERS:
        link = plugin_directory / name
        if not link.is_symlink():
            link.symlink_to(DEBIAN / name)
    code = (REPOSITORY / "dev" / "network_policy" / "cni_plugin.py").read_text()
    fresh = plugin_directory / f"{NAME}.new"
    # Without the packages of the site it starts in half the time, and every pod waits for it.
    fresh.write_text(f"#!{sys.executable} -IS\n{code}")
    fresh.chmod(0o755)
    fresh.replace(plugin_directory / NAME)


def status_line(settings: Settings) -> str:
    """For people, in the manner of `status`: whether all network policies hold."""
    try:
        problem = cni_plugin.call_enforcer(str(settings.network_policy_socket), {"command": "STATUS"})[
            "problem"
        ]
    except (OSError, ValueError, KeyError) as error:
        problem = f"unknown: {error}"
    return f"{'network policies':24} {problem or 'all hold'}"


def process_spec(settings: Settings) -> ProcessSpec:
    """The process as `up` starts it; the code counts into its fingerprint."""
    code = "".join((REPOSITORY / "dev" / "network_policy" / f"{name}.py").read_text() for name in _CODE)
    return ProcessSpec(
        name="fences",
        argv=(sys.executable, "-m", "dev.network_policy.enforcer", str(settings.state)),
        files={
            settings.run / "fences.code": code
            + (REPOSITORY / "dev" / "cluster" / "kube_client.py").read_text()
        },
        cwd=REPOSITORY,
        probe=UnixProbe(settings.network_policy_socket),
        grace_seconds=2,
    )
