"""A bridge with pods in network namespaces, and packets between them. No cluster.

Run by test_packets.py as root, in separate network and mount namespaces. Reads JSON from
standard input: `pods` (name, namespace, labels, address), `policies`, `namespaces`, `probes` (from, to, port,
protocol, and an address to send from); prints for each probe whether a listener saw it.
"""

import contextlib
import ctypes
import json
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

from dev.network_policy import nftables, ruleset
from dev.network_policy.policy import UnsupportedPolicy, deny_all, parse
from dev.settings import BRIDGE, BRIDGE_ADDRESS

SETTLE_SECONDS = 0.3
QUIET_SECONDS = 1.0
"""Seconds without a new connection after which the probes count as finished."""
CONNECT_TIMEOUT_SECONDS = 3.0
"""Includes the kernel's retry of the neighbour lookup and of the connection."""
NETNS = Path("/run/netns")
OUTSIDE = "world"
_NET = 0x40000000


def ip(*command: str) -> None:
    subprocess.run(["ip", *command], check=True, capture_output=True, timeout=120)


def build(pods: list[dict[str, Any]], machine: list[str], world: list[str]) -> None:
    """Create a bridge, loopback addresses and one interface per pod."""
    subprocess.run(["mount", "--make-rprivate", "/"], check=True, timeout=120)
    NETNS.mkdir(parents=True, exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "none", str(NETNS)], check=True, timeout=120)
    ip("link", "set", "lo", "up")
    ip("link", "add", BRIDGE, "type", "bridge")
    ip("address", "add", f"{BRIDGE_ADDRESS}/16", "dev", BRIDGE)
    ip("link", "set", BRIDGE, "up")
    for address in machine:
        ip("address", "add", f"{address}/32", "dev", "lo")
    Path("/proc/sys/net/ipv4/ip_forward").write_text("1")
    # Addresses outside the machine, on a separate link.
    ip("netns", "add", OUTSIDE)
    ip("link", "add", "world", "type", "veth", "peer", "name", "eth0", "netns", OUTSIDE)
    ip("address", "add", "198.51.100.1/24", "dev", "world")
    ip("link", "set", "world", "up")
    ip("-n", OUTSIDE, "address", "add", "198.51.100.2/24", "dev", "eth0")
    ip("-n", OUTSIDE, "link", "set", "eth0", "up")
    ip("-n", OUTSIDE, "route", "add", "default", "via", "198.51.100.1")
    for address in world:
        ip("-n", OUTSIDE, "address", "add", f"{address}/32", "dev", "eth0")
        ip("route", "add", f"{address}/32", "via", "198.51.100.2")
    for number, pod in enumerate(pods):
        space = f"lab{number}"
        ip("netns", "add", space)
        ip("link", "add", f"h{number}", "type", "veth", "peer", "name", "eth0", "netns", space)
        ip("link", "set", f"h{number}", "master", BRIDGE, "up")
        ip("-n", space, "link", "set", "lo", "up")
        ip("-n", space, "address", "add", f"{pod['address']}/16", "dev", "eth0")
        ip("-n", space, "link", "set", "eth0", "up")
        ip("-n", space, "route", "add", "default", "via", BRIDGE_ADDRESS)
        pod["space"] = space


@contextlib.contextmanager
def inside(space: str | None):
    """Move the calling thread into a pod's network namespace; None is the host's."""
    if space is None:
        yield
        return
    libc = ctypes.CDLL(None, use_errno=True)
    with Path("/proc/thread-self/ns/net").open() as before, (NETNS / space).open() as there:
        if libc.setns(there.fileno(), _NET):
            raise OSError(ctypes.get_errno(), "setns")
        try:
            yield
        finally:
            libc.setns(before.fileno(), _NET)


def link_local(space: str | None) -> str:
    """Return the link-local address of a pod's interface or of the bridge."""
    netns = ["-n", space] if space else []
    device = "eth0" if space else BRIDGE
    command = ["ip", "-json", "-6", *netns, "address", "show", "dev", device, "scope", "link"]
    deadline = time.monotonic() + 60
    while True:
        done = subprocess.run(command, check=True, capture_output=True, timeout=120)
        found = [one for link in json.loads(done.stdout) for one in link.get("addr_info", ())]
        # Not usable until duplicate address detection ends.
        if found and not found[0].get("tentative"):
            return str(found[0]["local"])
        assert time.monotonic() < deadline, command
        time.sleep(0.1)


class ProbeListener:
    """Records peers; sends nothing."""

    def __init__(self, space: str | None, address: str, port: int, protocol: str) -> None:
        self.peers: list[str] = []
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        self._kind = socket.SOCK_STREAM if protocol == "tcp" else socket.SOCK_DGRAM
        with inside(space):
            self._socket = socket.socket(family, self._kind)
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            self._socket.bind((address, port))
            if protocol == "tcp":
                self._socket.listen(64)
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            if self._kind == socket.SOCK_STREAM:
                connection, peer = self._socket.accept()
                connection.close()
            else:
                _, peer = self._socket.recvfrom(100)
            self.peers.append(peer[0])


def send_probe(space: str, probe: dict[str, Any]) -> None:
    """Send one probe; the listener records whether it arrives."""
    target = probe["to"]
    family = socket.AF_INET6 if ":" in target else socket.AF_INET
    kind = socket.SOCK_STREAM if probe.get("protocol", "tcp") == "tcp" else socket.SOCK_DGRAM
    with inside(space), socket.socket(family, kind) as sock, contextlib.suppress(OSError):
        sock.settimeout(CONNECT_TIMEOUT_SECONDS)
        if source := probe.get("source"):
            sock.bind((source, 0))
        scope = [0, socket.if_nametoindex("eth0")] if ":" in target else []
        sock.connect((target, probe["port"], *scope))
        sock.send(b"probe")


def apply_rules(scenario: dict[str, Any]) -> None:
    """Apply the rules that the enforcer would apply."""
    policies = []
    for item in scenario["policies"]:
        try:
            policies.append(parse(item))
        except UnsupportedPolicy:
            policies.append(deny_all(item))
    pods = [
        ruleset.AddressedPod(pod["namespace"], pod["labels"], pod["address"])
        for pod in scenario["pods"]
        if not pod.get("unknown")
    ]
    if scenario.get("enforced", True):
        nftables.prepare()
        nftables.apply(ruleset.text(ruleset.ClusterSnapshot(pods, scenario["namespaces"], policies)))


def main() -> None:
    scenario = json.load(sys.stdin)
    world = scenario.get("world", [])
    build(scenario["pods"], scenario.get("machine", []), world)
    by_address = {pod["address"]: pod["space"] for pod in scenario["pods"]}
    by_address |= dict.fromkeys(world, OUTSIDE)
    by_name = {pod["name"]: pod for pod in scenario["pods"]}
    for pod in scenario["pods"]:
        for address in pod.get("extra_addresses", []):
            ip("-n", pod["space"], "address", "add", f"{address}/32", "dev", "eth0")
    time.sleep(SETTLE_SECONDS)
    for probe in scenario["probes"]:
        if probe["to"].startswith("ip6:"):
            # Link-local addresses are not assigned: each interface has one.
            space = by_name.get(probe["to"].removeprefix("ip6:"), {}).get("space")
            link_local(by_name[probe["from"]]["space"])
            probe["to"] = link_local(space)
            by_address[probe["to"]] = space
    listeners = {}
    for probe in scenario["probes"]:
        target_key = probe["to"], probe["port"], probe.get("protocol", "tcp")
        if target_key not in listeners:
            bound = "::" if ":" in probe["to"] else probe["to"]
            listeners[target_key] = ProbeListener(by_address.get(probe["to"]), bound, *target_key[1:])
    apply_rules(scenario)
    threads = []
    for probe in scenario["probes"]:
        sender = by_name[probe["from"]]
        threads.append(threading.Thread(target=send_probe, args=(sender["space"], probe)))
        threads[-1].start()
    for thread in threads:
        thread.join(60)
    previous = -1
    while previous < (now := sum(len(listener.peers) for listener in listeners.values())):
        previous = now
        time.sleep(QUIET_SECONDS)
    arrived = []
    for probe in scenario["probes"]:
        target_key = probe["to"], probe["port"], probe.get("protocol", "tcp")
        source = probe.get("source", by_name[probe["from"]]["address"])
        arrived.append(
            source in listeners[target_key].peers
            or (":" in probe["to"] and bool(listeners[target_key].peers))
        )
    print(json.dumps(arrived))


if __name__ == "__main__":
    main()
