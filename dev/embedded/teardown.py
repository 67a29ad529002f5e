"""Teardown of the embedded cluster, in the order that leaves nothing behind.

Called by `down`. Stops kubelet first, because it would restart what is stopped; containerd after the pods, to
record how they ended.
"""

import shutil

from dev import packages
from dev.embedded import cgroups, host_cleanup, sysctls
from dev.net import bridge, firewall
from dev.network_policy import nftables
from dev.process import program
from dev.settings import Settings

_POD_GRACE_SECONDS = 3.0
_CONTAINERD_GRACE_SECONDS = 20.0


def stop(settings: Settings, names: tuple[str, ...]) -> list[str]:
    """Stop everything. `names` are the processes in start order. Return what could not be removed."""
    remaining = []
    others = [name for name in reversed(names) if name not in ("kubelet", "containerd")]
    remaining += [name for name in ("kubelet",) if not program.stop(settings, name)]
    remaining += [f"pod process {pid}" for pid in sorted(cgroups.end_members(_POD_GRACE_SECONDS))]
    remaining += [name for name in others if not program.stop(settings, name)]
    if not program.stop(settings, "containerd", _CONTAINERD_GRACE_SECONDS):
        remaining.append("containerd")
    host_cleanup.end_shims(settings)
    remaining += [f"mount {point}" for point in host_cleanup.unmount(settings)]
    remaining += [f"cgroup {path}" for path in cgroups.remove()]
    bridge.down()
    firewall.down()
    nftables.remove()
    sysctls.restore(settings)
    host_cleanup.remove_host_files(settings)
    packages.remove_policy()
    if not remaining:
        shutil.rmtree(settings.run, ignore_errors=True)
    return remaining
