"""Packet filter rules of the dev cluster, and removal of all that the node's processes created.

Chains of kubelet and kube-proxy start with KUBE-, those of the dev cluster with CREWYARD-. No other chain or
rule is changed, and no table is replaced as a whole.
"""

import shlex
import subprocess

from dev.process import command
from dev.settings import BRIDGE, POD_NETWORK

_PREFIXES = ("KUBE-", "CREWYARD-")
_TABLES = ("nat", "filter", "mangle")
_FAMILIES = ("iptables", "ip6tables")
_FORWARD, _INPUT, _MASQUERADE = "CREWYARD-FORWARD", "CREWYARD-INPUT", "CREWYARD-MASQUERADE"

# A host accepts packets for any of its addresses on every interface, and forwards: without the
# two DROPs other hosts on its networks could reach registry, API and pods with a static route.
RULES = f"""*nat
:{_MASQUERADE} - [0:0]
-A {_MASQUERADE} -s {POD_NETWORK} ! -d {POD_NETWORK} ! -o {BRIDGE} -j MASQUERADE
COMMIT
*filter
:{_INPUT} - [0:0]
-A {_INPUT} -i lo -j RETURN
-A {_INPUT} -i {BRIDGE} -j RETURN
-A {_INPUT} -d {POD_NETWORK} -j DROP
:{_FORWARD} - [0:0]
-A {_FORWARD} -i {BRIDGE} -j ACCEPT
-A {_FORWARD} -o {BRIDGE} -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT
-A {_FORWARD} -o {BRIDGE} -j DROP
COMMIT
"""
_JUMPS = (("nat", "POSTROUTING", _MASQUERADE), ("filter", "INPUT", _INPUT), ("filter", "FORWARD", _FORWARD))


def _rules(family: str, table: str) -> list[str]:
    try:
        done = subprocess.run(
            [family, "-w", "10", "-t", table, "-S"], capture_output=True, text=True, timeout=60, check=False
        )
    except FileNotFoundError:
        return []  # `up` failed before the package was installed
    # A kernel without IPv6 or without this table has none of these rules.
    return done.stdout.splitlines() if done.returncode == 0 else []


def removal_commands(rules: list[str]) -> tuple[list[list[str]], list[str]]:
    """Return what to remove from one table: rules of other chains to delete, chains to flush and drop.

    `rules` is the output of `iptables -S`.
    """
    chains = [
        line.split()[1] for line in rules if line.startswith("-N ") and line.split()[1].startswith(_PREFIXES)
    ]
    jumps = []
    for line in rules:
        arguments = shlex.split(line)
        if arguments[:1] != ["-A"] or arguments[1] in chains or "-j" not in arguments:
            continue
        if arguments[arguments.index("-j") + 1] in chains:
            jumps.append(["-D", *arguments[1:]])
    return jumps, chains


def up() -> None:
    """Let pods out and their responses in, independent of the machine's forward policy."""
    if all(f"-A {chain} -j {target}" in _rules("iptables", table) for table, chain, target in _JUMPS):
        return
    # Replaces the given chains atomically; all others stay unchanged.
    command.read_output(["iptables-restore", "-w", "10", "--noflush"], stdin=RULES)
    for table, chain, target in _JUMPS:
        if f"-A {chain} -j {target}" not in _rules("iptables", table):
            command.read_output(["iptables", "-w", "10", "-t", table, "-I", chain, "-j", target])


def down() -> None:
    """Remove every chain of the node and the rules that jump to them."""
    for family in _FAMILIES:
        for table in _TABLES:
            jumps, chains = removal_commands(_rules(family, table))
            for jump in jumps:
                command.read_output([family, "-w", "10", "-t", table, *jump])
            if chains:
                # Flush all before dropping any: they reference each other.
                lines = [f"-F {chain}" for chain in chains] + [f"-X {chain}" for chain in chains]
                text = "\n".join([f"*{table}", *lines, "COMMIT", ""])
                command.read_output([f"{family}-restore", "-w", "10", "--noflush"], stdin=text)
