"""A bridge with pods in network namespaces of their own, and packets between them. No cluster.

Run by the tests beside it, as root, within namespaces of network and mounts of its own. Reads JSON from
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

SETTLE = 0.3
QUIET = 1.0
"""Seconds in which no listener hears of anybody any more, however busy the machine is."""
PATIENCE = 3.0
"""With a second try of the kernel's, of both the neighbour's address and the connection."""
NETNS = Path("/run/netns")
WORLD = "world"
_NET = 0x40000000


def ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True, timeout=30)


def build(pods: list[dict[str, Any]], machine: list[str], world: list[str]) -> None:
    """The machine: a bridge with its address, others on the loopback, and an interface for each pod."""
    subprocess.run(["mount", "--make-rprivate", "/"], check=True, timeout=30)
    NETNS.mkdir(parents=True, exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "none", str(NETNS)], check=True, timeout=30)
    ip("link", "set", "lo", "up")
    ip("link", "add", BRIDGE, "type", "bridge")
    ip("address", "add", f"{BRIDGE_ADDRESS}/16", "dev", BRIDGE)
    ip("link", "set", BRIDGE, "up")
    for address in machine:
        ip("address", "add", f"{address}/32", "dev", "lo")
    Path("/proc/sys/net/ipv4/ip_forward").write_text("1")
    # What lies beyond the machine, on a link that is no pod's.
    ip("netns", "add", WORLD)
    ip("link", "add", "world", "type", "veth", "peer", "name", "eth0", "netns", WORLD)
    ip("address", "add", "198.51.100.1/24", "dev", "world")
    ip("link", "set", "world", "up")
    ip("-n", WORLD, "address", "add", "198.51.100.2/24", "dev", "eth0")
    ip("-n", WORLD, "link", "set", "eth0", "up")
    ip("-n", WORLD, "route", "add", "default", "via", "198.51.100.1")
    for address in world:
        ip("-n", WORLD, "address", "add", f"{address}/32", "dev", "eth0")
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
    """The calling thread in a pod's network namespace; None is the machine's own."""
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
    """The address that a pod's interface, or the bridge, gave itself."""
    where = ["-n", space] if space else []
    device = "eth0" if space else BRIDGE
    words = ["ip", "-json", "-6", *where, "address", "show", "dev", device, "scope", "link"]
    deadline = time.monotonic() + 60
    while True:
        done = subprocess.run(words, check=True, capture_output=True, timeout=30)
        found = [one for link in json.loads(done.stdout) for one in link.get("addr_info", ())]
        # Until the kernel has seen that nobody else has it, it cannot be used.
        if found and not found[0].get("tentative"):
            return str(found[0]["local"])
        assert time.monotonic() < deadline, words
        time.sleep(0.1)


class Listener:
    """Counts who comes; says nothing."""

    def __init__(self, space: str | None, address: str, port: int, protocol: str) -> None:
        self.seen: list[str] = []
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
            self.seen.append(peer[0])


def attempt(space: str, probe: dict[str, Any]) -> None:
    """Knocks once; whether anybody hears is for the listener to say."""
    target = probe["to"]
    family = socket.AF_INET6 if ":" in target else socket.AF_INET
    kind = socket.SOCK_STREAM if probe.get("protocol", "tcp") == "tcp" else socket.SOCK_DGRAM
    with inside(space), socket.socket(family, kind) as knock, contextlib.suppress(OSError):
        knock.settimeout(PATIENCE)
        if source := probe.get("source"):
            knock.bind((source, 0))
        scope = [0, socket.if_nametoindex("eth0")] if ":" in target else []
        knock.connect((target, probe["port"], *scope))
        knock.send(b"knock")


def rules(given: dict[str, Any]) -> None:
    """What the enforcer would apply."""
    policies = []
    for item in given["policies"]:
        try:
            policies.append(parse(item))
        except UnsupportedPolicy:
            policies.append(deny_all(item))
    pods = [
        ruleset.AddressedPod(pod["namespace"], pod["labels"], pod["address"])
        for pod in given["pods"]
        if not pod.get("unknown")
    ]
    if given.get("fenced", True):
        nftables.prepare()
        nftables.apply(ruleset.text(ruleset.ClusterSnapshot(pods, given["namespaces"], policies)))


def main() -> None:
    given = json.load(sys.stdin)
    world = given.get("world", [])
    build(given["pods"], given.get("machine", []), world)
    by_address = {pod["address"]: pod["space"] for pod in given["pods"]}
    by_address |= dict.fromkeys(world, WORLD)
    by_name = {pod["name"]: pod for pod in given["pods"]}
    for pod in given["pods"]:
        for address in pod.get("also", []):
            ip("-n", pod["space"], "address", "add", f"{address}/32", "dev", "eth0")
    time.sleep(SETTLE)
    for probe in given["probes"]:
        if probe["to"].startswith("ip6:"):
            # Nobody gives out these addresses: each interface has one.
            where = by_name.get(probe["to"].removeprefix("ip6:"), {}).get("space")
            link_local(by_name[probe["from"]]["space"])
            probe["to"] = link_local(where)
            by_address[probe["to"]] = where
    listeners = {}
    for probe in given["probes"]:
        where = probe["to"], probe["port"], probe.get("protocol", "tcp")
        if where not in listeners:
            bound = "::" if ":" in probe["to"] else probe["to"]
            listeners[where] = Listener(by_address.get(probe["to"]), bound, *where[1:])
    rules(given)
    threads = []
    for probe in given["probes"]:
        sender = by_name[probe["from"]]
        threads.append(threading.Thread(target=attempt, args=(sender["space"], probe)))
        threads[-1].start()
    for thread in threads:
        thread.join(60)
    known = -1
    while known < (now := sum(len(listener.seen) for listener in listeners.values())):
        known = now
        time.sleep(QUIET)
    heard = []
    for probe in given["probes"]:
        where = probe["to"], probe["port"], probe.get("protocol", "tcp")
        source = probe.get("source", by_name[probe["from"]]["address"])
        heard.append(source in listeners[where].seen or (":" in probe["to"] and bool(listeners[where].seen)))
    print(json.dumps(heard))


if __name__ == "__main__":
    main()
