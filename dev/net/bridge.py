"""The bridge between pods and host.

Made before the first process, since its address is the node's, the
registry's, the name service's and the API's.
"""

import json
import subprocess
from ipaddress import IPv4Network, ip_network
from typing import Any

from dev.errors import DevClusterError
from dev.process import command
from dev.settings import BRIDGE, BRIDGE_ADDRESS, POD_NETWORK, SERVICE_NETWORK

# Of the locally administered kind. Fixed, else it would change with every pod that comes or goes.
_HARDWARE_ADDRESS = "0a:58:0a:d5:00:01"
_MTU_DEFAULT = 1500


def _ip(*arguments: str) -> Any:
    text = command.read_output(["ip", "-json", "-4", *arguments])
    return json.loads(text) if text.strip() else []


def conflict(routes: list[dict[str, Any]]) -> str | None:
    """The route, if any, of somebody else's network that overlaps the pods' or the Services'."""
    cluster_networks = [ip_network(POD_NETWORK), ip_network(SERVICE_NETWORK)]
    for route in routes:
        destination = str(route.get("dst", "default"))
        if destination == "default" or route.get("dev") == BRIDGE:
            continue
        network = IPv4Network(destination, strict=False)
        # A wider route, such as a VPN's for 10.0.0.0/8, is merely outranked by the bridge's.
        if any(
            network.subnet_of(cluster_network)
            for cluster_network in cluster_networks
            if isinstance(cluster_network, IPv4Network)
        ):
            return destination
    return None


def mtu() -> int:
    """The packet size of the way to the internet; pods must not send larger ones."""
    sizes = []
    for device in devices(_ip("route", "show", "default")):
        for link in _ip("link", "show", "dev", device):
            sizes.append(int(link["mtu"]))
    return min([*sizes, _MTU_DEFAULT])


def devices(routes: list[dict[str, Any]]) -> list[str]:
    """The interfaces that routes lead to, sorted; a route of several ways names them one by one."""
    hops = [hop for route in routes for hop in (route, *route.get("nexthops", []))]
    return sorted({str(hop["dev"]) for hop in hops if "dev" in hop})


def exists() -> bool:
    """Whether the bridge is there."""
    return any(link.get("ifname") == BRIDGE for link in _ip("link", "show"))


def up(size: int) -> bool:
    """Makes the bridge with its address. True if it had to be made. Raises GroundError on taken addresses."""
    for module in ("br_netfilter", "overlay"):
        # Built into many kernels; where it is missing altogether, the process that needs it says so.
        subprocess.run(["modprobe", module], capture_output=True, timeout=30, check=False)
    created = not exists()
    if created:
        overlapping = conflict(_ip("route", "show"))
        if overlapping:
            raise DevClusterError(
                f"The network {overlapping} of this machine overlaps those of the cluster, {POD_NETWORK} and "
                f"{SERVICE_NETWORK}. Take that network down, or change the addresses in dev/settings.py."
            )
        command.read_output(["ip", "link", "add", BRIDGE, "address", _HARDWARE_ADDRESS, "type", "bridge"])
    prefix = POD_NETWORK.partition("/")[2]
    command.read_output(["ip", "address", "replace", f"{BRIDGE_ADDRESS}/{prefix}", "dev", BRIDGE])
    command.read_output(["ip", "link", "set", BRIDGE, "mtu", str(size), "up"])
    return created


def down() -> None:
    """Removes the bridge and what is still plugged into it."""
    if not exists():
        return
    for link in _ip("link", "show", "master", BRIDGE):
        name = str(link["ifname"]).partition("@")[0]
        subprocess.run(["ip", "link", "delete", name], capture_output=True, timeout=30, check=False)
    command.read_output(["ip", "link", "delete", BRIDGE])
