"""Installation of the network policy enforcer by `up`: the process, and the CNI plugin for containerd."""

import sys
from pathlib import Path

from dev.network_policy import cni_plugin
from dev.process.probe import UnixProbe
from dev.process.program import ProcessSpec
from dev.settings import REPOSITORY, Settings

NAME = "crewyard-fences"
"""The plugin's type in the CNI configuration, which is also its file name."""
DEBIAN = Path("/usr/lib/cni")
_OTHERS = ("bridge", "host-local", "loopback")
_CODE = ("addresses", "enforcer", "policy", "ruleset", "selector", "watcher", "nftables")


def directory(settings: Settings) -> Path:
    """Return the directory of containerd's CNI plugins."""
    return settings.configuration / "cni-plugins"


def install_plugins(settings: Settings) -> None:
    """Write the plugin, and links to the system's plugins that the configuration uses."""
    plugin_directory = directory(settings)
    plugin_directory.mkdir(parents=True, exist_ok=True)
    for name in _OTHERS:
        link = plugin_directory / name
        if not link.is_symlink():
            link.symlink_to(DEBIAN / name)
    code = (REPOSITORY / "dev" / "network_policy" / "cni_plugin.py").read_text()
    fresh = plugin_directory / f"{NAME}.new"
    # Without site-packages it starts in half the time, and every pod waits for it.
    fresh.write_text(f"#!{sys.executable} -IS\n{code}")
    fresh.chmod(0o755)
    fresh.replace(plugin_directory / NAME)


def status_line(settings: Settings) -> str:
    """Return the line of `status`: whether all network policies are enforced."""
    try:
        problem = cni_plugin.call_enforcer(str(settings.network_policy_socket), {"command": "STATUS"})[
            "problem"
        ]
    except (OSError, ValueError, KeyError) as error:
        problem = f"unknown: {error}"
    return f"{'network policies':24} {problem or 'all enforced'}"


def process_spec(settings: Settings) -> ProcessSpec:
    """Return the process that `up` starts; its fingerprint includes the code."""
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
