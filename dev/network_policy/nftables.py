"""Puts rules into the kernel, and takes them out again."""

import subprocess
from pathlib import Path

from dev.errors import DevClusterError
from dev.network_policy.ruleset import IPV6, TABLE
from dev.packages import program_path
from dev.process import command

_BRIDGED = Path("/proc/sys/net/bridge/bridge-nf-call-iptables")
_IPV6 = Path("/proc/sys/net/ipv6")


def prepare() -> None:
    """Closes IPv6 on the bridge. Raises GroundError where the kernel cannot fence pods at all."""
    if not _BRIDGED.exists():
        raise DevClusterError(
            "This kernel has no br_netfilter, so that packets between pods could not be filtered. "
            "Load or build the module br_netfilter."
        )
    if _IPV6.is_dir():
        apply(IPV6)


def apply(text: str) -> None:
    """Makes a text of `ruleset` hold, all of it at once or nothing. Raises CommandFailed."""
    command.read_output([program_path("nft"), "-f", "-"], stdin=text, seconds=30)


def remove() -> None:
    """Takes our tables away, whatever they have in them."""
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
            return  # `up` came to nothing before the package was there
        if f"table {family} {TABLE}" in listing.stdout.splitlines():
            apply(f"delete table {family} {TABLE}\n")
