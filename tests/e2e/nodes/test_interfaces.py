"""Interfaces of pods: they do not disturb the programs of the machine."""

import os
from pathlib import Path

import pytest

INTERFACES = Path("/sys/class/net")
IPV6_ADDRESSES = Path("/proc/net/if_inet6")


def interfaces() -> set[str]:
    return {path.name for path in INTERFACES.iterdir()}


def with_ipv6_address() -> set[str]:
    if not IPV6_ADDRESSES.exists():
        # The kernel has no IPv6.
        return set()
    return {line.split()[-1] for line in IPV6_ADDRESSES.read_text().splitlines()}


@pytest.mark.skipif(
    os.environ.get("CREWYARD_CLUSTER") in ("kind", "current"),
    reason="the cluster is not the embedded node",
)
async def test_a_pods_interface_gets_no_ipv6_address(crew):
    """A browser aborts its requests (net::ERR_NETWORK_CHANGED) when an interface of its machine gets one."""
    before = interfaces()
    run = await crew.start("sleeps", input={"seconds": 1})
    await crew.wait_for_log(run, "asleep")
    added = interfaces() - before
    assert added
    assert added & with_ipv6_address() == set()
    await crew.wait_finished(run)
