"""Kernel settings of the node, and how to restore them.

`up` records each value before anything changes it, including those that kubelet and kube-proxy change; `down`
restores the recorded values. The record is in `run`: after a reboot the kernel has its own values again.
"""

import json
from pathlib import Path

from dev import files
from dev.settings import Settings

# What the node needs: forwarding between pods and the internet, iptables for bridged packets,
# enough watches for a full node. A new interface gets no IPv6 link-local address: each one would make a
# browser on this machine abort its requests (net::ERR_NETWORK_CHANGED), and each pod has an interface.
# None: only recorded, because kubelet or kube-proxy sets it.
REQUIRED: dict[str, int | None] = {
    "net/ipv4/ip_forward": 1,
    "net/bridge/bridge-nf-call-iptables": 1,
    "net/bridge/bridge-nf-call-ip6tables": 1,
    "net/ipv6/conf/default/addr_gen_mode": 1,
    "net/ipv4/conf/all/route_localnet": None,
    "net/netfilter/nf_conntrack_max": None,
    "net/netfilter/nf_conntrack_tcp_timeout_established": None,
    "net/netfilter/nf_conntrack_tcp_timeout_close_wait": None,
    "vm/overcommit_memory": None,
    "vm/panic_on_oom": None,
    "kernel/panic": None,
    "kernel/panic_on_oops": None,
    "kernel/keys/root_maxkeys": None,
    "kernel/keys/root_maxbytes": None,
}
# Raised if lower, never reduced.
MINIMUM = {"fs/inotify/max_user_instances": 1024, "fs/inotify/max_user_watches": 524288}


def changes(current: dict[str, int]) -> dict[str, int]:
    """Return the settings to write, given the current values of this kernel."""
    required = {name: value for name, value in REQUIRED.items() if value is not None and name in current}
    raised = {name: value for name, value in MINIMUM.items() if name in current and current[name] < value}
    return {name: value for name, value in (required | raised).items() if current[name] != value}


def read(root: Path = Path("/proc/sys")) -> dict[str, int]:
    """Return the current values of the settings above that this kernel has."""
    values = {}
    for name in (*REQUIRED, *MINIMUM):
        try:
            values[name] = int((root / name).read_text())
        except (OSError, ValueError):
            continue
    return values


def write(values: dict[str, int], root: Path = Path("/proc/sys")) -> None:
    """Write the given values."""
    for name, value in values.items():
        (root / name).write_text(f"{value}\n")


def apply(settings: Settings) -> None:
    """Record the first value of each setting, then write the required ones."""
    record_file = settings.run / "sysctls.json"
    current = read()
    recorded = json.loads(record_file.read_text()) if record_file.exists() else {}
    files.write(record_file, json.dumps({**current, **recorded}))
    write(changes(current))


def restore(settings: Settings) -> None:
    """Write back the recorded values."""
    record_file = settings.run / "sysctls.json"
    if record_file.exists():
        current = read()
        recorded = json.loads(record_file.read_text())
        write({name: value for name, value in recorded.items() if name in current and current[name] != value})
        record_file.unlink()
