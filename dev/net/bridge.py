"""The bridge between pods and host.

Created before the first process: its address is that of the node, the registry, DNS and the API.
"""

import json
import subprocess
from ipaddress import IPv4Network, ip_network
from typing import Any

from dev.errors import DevClusterError
from dev.process import command
from dev.settings import BRIDGE, BRIDGE_ADDRESS, POD_NETWORK, SERVICE_NETWORK

# Locally administered. Fixed, because otherwise it changes whenever a pod attaches or detaches.
_HARDWARE_ADDRESS = "0a:58:0a:d5:00:01"
_MTU_DEFAULT = 1500


def _ip(*arguments: str) -> Any:
    text = command.read_output(["ip", "-json", "-4", *arguments])
    return json.loads(text) if text.strip() else []


def conflict(routes: list[dict[str, Any]]) -> str | None:
    """Return the first route of another network that overlaps the pods' or the Services', if any."""
    cluster_networks = [ip_network(POD_NETWORK), ip_network(SERVICE_NETWORK)]
    for route in routes:
        destination = str(route.get("dst", "default"))
        if destination == "default" or route.get("dev") == BRIDGE:
            continue
        network = IPv4Network(destination, strict=False)
        # A wider route, such as a VPN's for 10.0.0.0/8, has lower priority than the bridge's.
        if any(
            network.subnet_of(cluster_network)
            for cluster_network in cluster_networks
            if isinstance(cluster_network, IPv4Network)
        ):
            return destination
    return None


def mtu() -> int:
    """Return the MTU of the route to the internet; pods must not send larger packets."""
    sizes = []
    for device in devices(_ip("route", "show", "default")):
        for link in _ip("link", "show", "dev", device):
            sizes.append(int(link["mtu"]))
    return min([*sizes, _MTU_DEFAULT])


def devices(routes: list[dict[str, Any]]) -> list[str]:
    """Return the interfaces of routes, sorted; multipath routes have one per hop."""
    hops = [hop for route in routes for hop in (route, *route.get("nexthops", []))]
    return sorted({str(hop["dev"]) for hop in hops if "dev" in hop})


def exists() -> bool:
    """Return whether the bridge exists."""
    return any(link.get("ifname") == BRIDGE for link in _ip("link", "show"))


def up(size: int) -> bool:
    """Create the bridge with its address; return whether it was new. Raises DevClusterError on a conflict."""
    for module in ("br_netfilter", "overlay"):
        # Built into many kernels; if it is missing, the process that needs it reports that.
        subprocess.run(["modprobe", module], capture_output=True, timeout=30, check=False)
    created = not exists()
    if created:
        overlapping = conflict(_ip("route", "show"))
        if overlapping:
            raise DevClusterError(
                f"The network {overlapping} of this machine overlaps those of the cluster, {POD_NETWORK} and "
                f"{SERVICE_NETWORK}. Remove that network, or change the addresses in dev/settings.py."
            )
        command.read_output(["ip", "link", "add", BRIDGE, "address", _HARDWARE_ADDRESS, "type", "bridge"])
    prefix = POD_NETWORK.partition("/")[2]
    command.read_output(["ip", "address", "replace", f"{BRIDGE_ADDRESS}/{prefix}", "dev", BRIDGE])
    command.read_output(["ip", "link", "set", BRIDGE, "mtu", str(size), "up"])
    return created


def down() -> None:
    """Remove the bridge and the interfaces attached to it."""
    if not exists():
        return
    for link in _ip("link", "show", "master", BRIDGE):
        name = str(link["ifname"]).partition("@")[0]
        subprocess.run(["ip", "link", "delete", name], capture_output=True, timeout=30, check=False)
    command.read_output(["ip", "link", "delete", BRIDGE])
