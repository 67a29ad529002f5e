"""Application of nftables rules to the kernel, and their removal."""

import subprocess
from pathlib import Path

from dev.errors import DevClusterError
from dev.network_policy.ruleset import IPV6, TABLE
from dev.packages import program_path
from dev.process import command

_BRIDGED = Path("/proc/sys/net/bridge/bridge-nf-call-iptables")
_IPV6 = Path("/proc/sys/net/ipv6")


def prepare() -> None:
    """Block IPv6 on the bridge. Raises DevClusterError if the kernel cannot filter between pods."""
    if not _BRIDGED.exists():
        raise DevClusterError(
            "This kernel lacks br_netfilter, so packets between pods cannot be filtered. "
            "Load or build the module br_netfilter."
        )
    if _IPV6.is_dir():
        apply(IPV6)


def apply(text: str) -> None:
    """Apply a text of `ruleset` atomically. Raises CommandFailed."""
    command.read_output([program_path("nft"), "-f", "-"], stdin=text, seconds=30)


def remove() -> None:
    """Remove the dev cluster's tables."""
    for family in ("ip", "ip6"):
        try:
            listing = subprocess.run(
                [program_path("nft"), "list", "tables", family],
                capture_output=True,
                text=True,
                timeout=30,
                check=False,
            )
        except FileNotFoundError:
            return  # `up` failed before the package was installed
        if f"table {family} {TABLE}" in listing.stdout.splitlines():
            apply(f"delete table {family} {TABLE}\n")
